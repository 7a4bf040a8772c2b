import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { createLifecycle } from "../../../src/platform/system/lifecycle.ts";
import { openResultStores } from "../../../src/roles/server/result-stores.ts";
import { recordLog } from "../../support/engine/recorded-log.ts";
import { startTestBucket } from "../../support/servers/bucket-server.ts";
import { closedPort } from "../../support/servers/http-server.ts";
import { startTestS3 } from "../../support/servers/s3-server.ts";

async function setup(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "flow-stores-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const lifecycle = createLifecycle();
  t.after(() => lifecycle.stop());
  const log = recordLog();
  const open = async (settings: Record<string, string>) => {
    const config = loadConfig(settings);
    const stores = await openResultStores({ config, folder, keyValue: undefined, logger: log, lifecycle });
    return stores.map(({ kind }) => kind);
  };
  return { folder, log, open };
}

async function s3Settings(): Promise<Record<string, string>> {
  const { settings } = await startTestS3();
  return {
    FLOW_S3_ENDPOINT: settings.endpoint,
    FLOW_S3_BUCKET: settings.bucket,
    FLOW_S3_ACCESS_KEY_ID: settings.accessKeyId.reveal(),
    FLOW_S3_SECRET_ACCESS_KEY: settings.secretAccessKey.reveal(),
  };
}

const invalid = (message: RegExp) => ({ code: "INVALID_SETTING", message });

test("without settings there is no further store; with them there is what they ask for", async (t) => {
  const { folder, open } = await setup(t);
  assert.deepEqual(await open({}), []);
  const settings = await s3Settings();
  assert.deepEqual(await open(settings), ["s3"]);
  const { origin, bucket, account } = await startTestBucket();
  await writeFile(join(folder, "account.json"), account);
  const cloud = {
    FLOW_CLOUD_BUCKET: bucket,
    FLOW_CLOUD_BUCKET_ENDPOINT: origin,
    FLOW_CLOUD_BUCKET_ACCOUNT_FILE: "account.json",
  };
  assert.deepEqual(await open({ ...settings, ...cloud }), ["s3", "cloud_bucket"]);
});

test("incomplete store settings end the start, and all are reported at once", async (t) => {
  const { open } = await setup(t);
  const halves = { FLOW_S3_ENDPOINT: "http://127.0.0.1:1", FLOW_S3_BUCKET: "abc", FLOW_CLOUD_BUCKET: "abc" };
  await assert.rejects(
    open(halves),
    invalid(
      /^FLOW_S3_ENDPOINT, FLOW_S3_BUCKET set without FLOW_S3_ACCESS_KEY_ID, FLOW_S3_SECRET_ACCESS_KEY: .*\nFLOW_CLOUD_BUCKET set without FLOW_CLOUD_BUCKET_ACCOUNT_FILE/,
    ),
  );
});

test("a bucket that is not there and a key file that cannot be read end the start", async (t) => {
  const { open } = await setup(t);
  const settings = await s3Settings();
  await assert.rejects(
    open({ ...settings, FLOW_S3_BUCKET: "another" }),
    invalid(/no bucket 'another'.*FLOW_S3_BUCKET/),
  );
  const cloud = { FLOW_CLOUD_BUCKET: "abc", FLOW_CLOUD_BUCKET_ACCOUNT_FILE: "none.json" };
  await assert.rejects(open(cloud), invalid(/FLOW_CLOUD_BUCKET_ACCOUNT_FILE cannot be read: ENOENT/));
});

test("a service that does not answer yet is no reason to end", async (t) => {
  const { open, log } = await setup(t);
  const settings = { ...(await s3Settings()), FLOW_S3_ENDPOINT: `http://127.0.0.1:${await closedPort()}` };
  assert.deepEqual(await open(settings), ["s3"]);
  assert.equal(log.matching("a store of results does not answer yet").length, 1);
});

test("settings that cannot be are refused, and a key is never repeated", () => {
  for (const [name, value, message] of [
    ["FLOW_S3_ENDPOINT", "ftp://x", /must be an http or https address/],
    ["FLOW_S3_ENDPOINT", "http://user:hunter2@x", /without user, password or query$/],
    ["FLOW_S3_BUCKET", "Not A Bucket", /must be a bucket's name/],
    ["FLOW_S3_REGION", "EU", /must be of small letters/],
    ["FLOW_S3_SECRET_ACCESS_KEY", "hunter2 hunter2", /must be of visible ASCII characters, without spaces$/],
    ["FLOW_RESULT_KV_MAX_BYTES", "1048577", /whole number from 1 to 1048576/],
    ["FLOW_RESULT_MINIO_THRESHOLD_BYTES", "0", /whole number from 1/],
  ] as const) {
    assert.throws(
      () => loadConfig({ [name]: value }),
      (error: Error) =>
        error.message.startsWith(name) && message.test(error.message) && !/hunter2@|hunter2 h/.test(error.message),
      `${name}=${value}`,
    );
  }
});
