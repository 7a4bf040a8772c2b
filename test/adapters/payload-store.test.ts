import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { createBucketPayloads } from "../../src/adapters/bucket-payloads.ts";
import { parseBucketAccount } from "../../src/adapters/bucket-token.ts";
import { createDiskPayloads } from "../../src/adapters/disk-payloads.ts";
import { createKvPayloads } from "../../src/adapters/kv-payloads.ts";
import { createNatsKeyValue } from "../../src/adapters/nats-key-value.ts";
import { createPostgresKeyValue } from "../../src/adapters/postgres-key-value.ts";
import { createS3Payloads } from "../../src/adapters/s3-payloads.ts";
import { createSqlPayloads } from "../../src/adapters/sql-payloads.ts";
import type { PayloadStore } from "../../src/ports/payload-store.ts";
import { openServiceDatabase } from "../repositories/service-database.ts";
import { startTestBucket } from "../support/bucket-server.ts";
import { startTestNats } from "../support/nats-server.ts";
import { recordLog } from "../support/recorded-log.ts";
import { startTestS3 } from "../support/s3-server.ts";
import { openLink } from "./nats-pair.ts";
import { exercisePayloadStore } from "./payload-store-contract.ts";

const stores = new Map<string, PayloadStore>();
const closing: (() => Promise<unknown>)[] = [];
before(async () => {
  const folder = await mkdtemp(join(tmpdir(), "flow-payloads-"));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  stores.set("disk", createDiskPayloads(folder));
  const database = await openServiceDatabase();
  stores.set("sqldb", createSqlPayloads(database));
  stores.set("kv in PostgreSQL", createKvPayloads(createPostgresKeyValue(database)));
  const nats = await startTestNats({ maxPayload: 2_000_000 });
  const log = recordLog();
  const link = openLink(nats.url, log);
  await log.until(({ message }) => message.includes("connected to the broker"));
  stores.set("kv in NATS", createKvPayloads(createNatsKeyValue({ link, now: Date.now, maxAgeMs: 0 })));
  const s3 = createS3Payloads((await startTestS3()).settings);
  const { origin, bucket, account } = await startTestBucket();
  const cloud = createBucketPayloads({
    ...{ endpoint: origin, bucket, account: parseBucketAccount(account, "key.json"), now: Date.now },
  });
  closing.push(s3.close, cloud.close);
  stores.set("s3", s3);
  stores.set("cloud_bucket", cloud);
});
after(async () => {
  for (const close of closing) await close();
});

for (const name of ["disk", "sqldb", "kv in PostgreSQL", "kv in NATS", "s3", "cloud_bucket"]) {
  exercisePayloadStore(name, () => stores.get(name) as PayloadStore);
}
