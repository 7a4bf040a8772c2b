import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import S3Rver from "s3rver";
import type { S3Settings } from "../../../src/adapters/payloads/s3.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";

/** An S3-compatible server that checks signatures, with one bucket; gone when the file's tests are over. */
export interface TestS3 {
  settings: S3Settings;
  /** Nothing answers until {@link start}. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** The key that `s3rver` knows. */
const KEY = "S3RVER";
const BUCKET = "results-bucket";

const ending: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const end of ending) await end();
});

/** Starts one on a free port, which it keeps. */
export async function startTestS3(): Promise<TestS3> {
  const folder = await mkdtemp(join(tmpdir(), "flow-s3-"));
  let port = 0;
  let server: S3Rver | undefined;
  const start = async () => {
    const configureBuckets = port === 0 ? [{ name: BUCKET, configs: [] }] : [];
    server = new S3Rver({ address: "127.0.0.1", port, silent: true, directory: folder, configureBuckets });
    keepFolders(server.store);
    ({ port } = await server.run());
  };
  const stop = async () => {
    if (server === undefined) return;
    const closed = once(server.httpServer, "close");
    server.httpServer.close();
    server.httpServer.closeAllConnections();
    server = undefined;
    await closed;
  };
  await start();
  ending.push(stop, () => rm(folder, { recursive: true, force: true }));
  return {
    settings: {
      endpoint: `http://127.0.0.1:${port}`,
      bucket: BUCKET,
      region: "us-east-1",
      accessKeyId: createSecret(KEY),
      secretAccessKey: createSecret(KEY),
    },
    start,
    stop,
  };
}

/**
 * Lets removing an object leave its folder. `s3rver` removes empty folders, also while another object is being written there, and the
 * error of that write ends the process. S3 itself has no folders.
 */
function keepFolders(store: S3Rver["store"]): void {
  store.deleteObject = async (bucket, key) => {
    const files = ["object", "object.md5", "metadata.json"].map((name) => store.getResourcePath(bucket, key, name));
    await Promise.all(files.map((file) => rm(file, { force: true })));
  };
}
