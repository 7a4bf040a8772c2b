import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { before, test } from "node:test";
import { createS3Payloads, type S3Settings } from "../../../src/adapters/payloads/s3.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";
import { startTestS3, type TestS3 } from "../../support/servers/s3-server.ts";
import { bodyOf, textIn } from "../../support/service/payload-body.ts";

const ABOUT = { contentType: "application/json", ttlMs: 60_000 };
const SIGNAL = AbortSignal.timeout(600_000);

let server: TestS3;
before(async () => {
  server = await startTestS3();
});

function open(t: { after(work: () => Promise<void>): void }, more: Partial<S3Settings> = {}) {
  const store = createS3Payloads({ ...server.settings, ...more });
  t.after(() => store.close());
  return store;
}

test("what is stored says its bucket, its key and its etag", async (t) => {
  const store = open(t);
  await store.check?.();
  const location = await store.write(store.locate("42", "abc"), bodyOf("[1]"), ABOUT, SIGNAL);
  const { etag, ...place } = location;
  assert.deepEqual(place, { bucket: server.settings.bucket, key: "results/42/abc" });
  assert.match(String(etag), /^[0-9a-f]{32}$/);
});

test("16 MB go through in parts", async (t) => {
  const store = open(t);
  const json = JSON.stringify("x".repeat(16_000_000));
  const location = await store.write(store.locate("42", "long"), bodyOf(json), ABOUT, SIGNAL);
  let parts = 0;
  const reading = await store.read(location);
  assert.equal(reading?.bytes, json.length);
  for await (const part of reading?.body ?? []) {
    parts += 1;
    assert.ok(part.byteLength < 2_000_000);
  }
  assert.ok(parts > 10, `${parts} parts`);
});

test("the errors for a wrong key and for a missing bucket say what to fix", async (t) => {
  const stranger = open(t, { accessKeyId: createSecret("somebody") });
  await assert.rejects(stranger.write(stranger.locate("42", "x"), bodyOf("1"), ABOUT, SIGNAL), {
    code: "NOT_STORED",
    message: /s3 refused storing a result: 403 InvalidAccessKeyId\. Check its keys/,
  });
  const elsewhere = open(t, { bucket: "another-bucket" });
  const missing = { code: "NOT_STORED", message: /no bucket 'another-bucket'.*FLOW_S3_BUCKET/ };
  await assert.rejects(elsewhere.check?.() ?? Promise.resolve(), missing);
  await assert.rejects(elsewhere.write(elsewhere.locate("42", "x"), bodyOf("1"), ABOUT, SIGNAL), {
    code: "NOT_STORED",
    message: /404 NoSuchBucket/,
  });
});

test("while the service is away everything says so; then the same works", { timeout: 300_000 }, async (t) => {
  const store = open(t);
  const location = await store.write(store.locate("42", "kept"), bodyOf('"kept"'), ABOUT, SIGNAL);
  await server.stop();
  const away = { code: "UNAVAILABLE", message: /store s3 cannot be reached at the moment: connect ECONNREFUSED/ };
  await assert.rejects(store.read(location), away);
  await assert.rejects(store.write(store.locate("42", "x"), bodyOf("1"), ABOUT, SIGNAL), away);
  await assert.rejects(store.remove(location), away);
  await server.start();
  assert.equal(await textIn(await store.read(location)), '"kept"');
});

test("trouble that passes is tried again, with the whole body", async (t) => {
  const answers = [503, 500, 200];
  const slow = await startHttpServer((_request, response) => response.writeHead(answers.shift() ?? 200).end());
  t.after(() => slow.close());
  const store = open(t, { endpoint: slow.origin });
  await store.write(store.locate("42", "x"), bodyOf('"whole"'), ABOUT, SIGNAL);
  assert.deepEqual(
    slow.requests.map(({ body }) => body),
    ['"whole"', '"whole"', '"whole"'],
  );
});

test("a body that breaks off is the store's trouble, not an end", async (t) => {
  const broken = await startHttpServer((_request, response) => {
    response.writeHead(200, { "content-length": 1_000 }).write("part");
    setImmediate(() => response.destroy());
  });
  t.after(() => broken.close());
  const store = open(t, { endpoint: broken.origin });
  await assert.rejects(textIn(await store.read(store.locate("42", "x"))), { code: "UNAVAILABLE" });
});

// The server of these tests looks at no signature of version 4: it is worked out here from the request as it came.
test("a request is signed as Signature Version 4 has it, over the body's own checksum", async (t) => {
  const seen = await startHttpServer((_request, response) => response.writeHead(200).end());
  t.after(() => seen.close());
  const keys = { accessKeyId: createSecret("AKID"), secretAccessKey: createSecret("shh") };
  const store = open(t, { endpoint: seen.origin, region: "eu-1", ...keys });
  const body = bodyOf('"x"');
  await store.write(store.locate("42", "x"), body, ABOUT, SIGNAL);
  const { headers, url } = seen.requests[0] ?? assert.fail();
  const date = String(headers["x-amz-date"]);
  const scope = `${date.slice(0, 8)}/eu-1/s3/aws4_request`;
  const signed = "host;x-amz-content-sha256;x-amz-date";
  const canonical = [
    ...["PUT", `/${server.settings.bucket}/results/42/x`, "", `host:${headers.host}`],
    ...[`x-amz-content-sha256:${body.sha256}`, `x-amz-date:${date}`, "", signed, body.sha256],
  ].join("\n");
  const text = ["AWS4-HMAC-SHA256", date, scope, createHash("sha256").update(canonical).digest("hex")].join("\n");
  const hmac = (key: string | Buffer, data: string) => createHmac("sha256", key).update(data).digest();
  const key = scope.split("/").reduce<string | Buffer>(hmac, "AWS4shh");
  assert.equal(url, `/${server.settings.bucket}/results/42/x`);
  assert.equal(
    headers.authorization,
    `AWS4-HMAC-SHA256 Credential=AKID/${scope}, SignedHeaders=${signed}, Signature=${hmac(key, text).toString("hex")}`,
  );
});
