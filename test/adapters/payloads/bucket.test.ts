import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createBucketPayloads } from "../../../src/adapters/payloads/bucket.ts";
import { parseBucketAccount } from "../../../src/adapters/payloads/bucket-token.ts";
import { startTestBucket, type TestBucket } from "../../support/servers/bucket-server.ts";
import { bodyOf, textIn } from "../../support/service/payload-body.ts";

const ABOUT = { contentType: "application/json", ttlMs: 60_000 };
const SIGNAL = AbortSignal.timeout(600_000);

let server: TestBucket;
before(async () => {
  server = await startTestBucket();
});

function open(t: { after(work: () => Promise<void>): void }, more: { bucket?: string; now?: () => number } = {}) {
  const account = parseBucketAccount(server.account, "key.json");
  const { bucket = server.bucket, now = Date.now } = more;
  const store = createBucketPayloads({ endpoint: server.origin, bucket, account, now });
  t.after(() => store.close());
  return store;
}

test("what is stored says its bucket, its object and its address there", async (t) => {
  const store = open(t);
  await store.check?.();
  const location = await store.write(store.locate("42", "abc"), bodyOf("[1]"), ABOUT, SIGNAL);
  const object = "results/42/abc";
  assert.deepEqual(location, { bucket: server.bucket, object, uri: `gs://${server.bucket}/${object}` });
  assert.equal(String(server.objects.get(object)), "[1]");
});

test("one token serves many requests, at once and until its last minute", async (t) => {
  let now = Date.now();
  const store = open(t, { now: () => now });
  const before = server.tokens.length;
  const names = ["a", "b", "c", "d"];
  await Promise.all(names.map((name) => store.write(store.locate("1", name), bodyOf("1"), ABOUT, SIGNAL)));
  assert.equal(server.tokens.length, before + 1);
  now += 3_530_000;
  await store.read(store.locate("1", "a")).then((reading) => textIn(reading));
  assert.equal(server.tokens.length, before + 1);
  now += 11_000;
  await textIn(await store.read(store.locate("1", "a")));
  assert.equal(server.tokens.length, before + 2);
});

test("a token that was withdrawn is replaced, and the request made again", async (t) => {
  const store = open(t);
  await store.write(store.locate("2", "a"), bodyOf('"a"'), ABOUT, SIGNAL);
  server.withdraw();
  assert.equal(await textIn(await store.read(store.locate("2", "a"))), '"a"');
});

test("the errors for a missing bucket and for a refusal say what to fix", async (t) => {
  const elsewhere = open(t, { bucket: "another" });
  await assert.rejects(elsewhere.check?.() ?? Promise.resolve(), {
    code: "NOT_STORED",
    message: /no bucket 'another'.*FLOW_CLOUD_BUCKET/,
  });
  t.after(() => {
    server.fault = undefined;
  });
  const store = open(t);
  server.fault = 403;
  await assert.rejects(store.write(store.locate("3", "a"), bodyOf("1"), ABOUT, SIGNAL), {
    code: "NOT_STORED",
    message: /cloud_bucket refused storing a result: 403 as the test wants\. Check its keys, and that they may/,
  });
  server.fault = 503;
  await assert.rejects(store.remove(store.locate("3", "a")), { code: "UNAVAILABLE" });
});

test("an invalid key file is refused without quoting its content", () => {
  for (const text of ["hunter2", "{}", JSON.stringify({ client_email: "a", private_key: "hunter2" })]) {
    assert.throws(
      () => parseBucketAccount(text, "/keys/a.json"),
      (error: Error) =>
        /\/keys\/a\.json is not a service account's key/.test(error.message) && !/hunter2/.test(error.message),
    );
  }
});

test("the error for a key that cannot sign says so", async (t) => {
  const broken = JSON.stringify({
    client_email: "a@b",
    private_key: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
  });
  const account = parseBucketAccount(broken, "key.json");
  const store = createBucketPayloads({ endpoint: server.origin, bucket: server.bucket, account, now: Date.now });
  t.after(() => store.close());
  await assert.rejects(store.remove(store.locate("1", "x")), {
    code: "NOT_STORED",
    message: /private key of a@b cannot sign/,
  });
});
