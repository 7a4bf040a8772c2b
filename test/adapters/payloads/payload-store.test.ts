import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { createNatsKeyValue } from "../../../src/adapters/nats/key-value.ts";
import { createBucketPayloads } from "../../../src/adapters/payloads/bucket.ts";
import { parseBucketAccount } from "../../../src/adapters/payloads/bucket-token.ts";
import { createDiskPayloads } from "../../../src/adapters/payloads/disk.ts";
import { createKvPayloads } from "../../../src/adapters/payloads/kv.ts";
import { createS3Payloads } from "../../../src/adapters/payloads/s3.ts";
import { createSqlPayloads } from "../../../src/adapters/payloads/sql.ts";
import type { PayloadStore } from "../../../src/ports/payload-store.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import { recordLog } from "../../support/engine/recorded-log.ts";
import { startTestBucket } from "../../support/servers/bucket-server.ts";
import { startTestNats } from "../../support/servers/nats-server.ts";
import { startTestS3 } from "../../support/servers/s3-server.ts";
import { openLink } from "../nats-pair.ts";
import { exercisePayloadStore } from "../payload-store-contract.ts";

const stores = new Map<string, PayloadStore>();
const closing: (() => Promise<unknown>)[] = [];
before(async () => {
  const folder = await mkdtemp(join(tmpdir(), "flow-payloads-"));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  stores.set("disk", createDiskPayloads(folder));
  stores.set("sqldb", createSqlPayloads(await openServiceDatabase()));
  const nats = await startTestNats({ maxPayload: 2_000_000 });
  const log = recordLog();
  const link = openLink(nats.url, log);
  await log.until(({ message }) => message.includes("connected to the broker"));
  stores.set("kv", createKvPayloads(createNatsKeyValue({ link, now: Date.now, maxAgeMs: 0 })));
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

for (const name of ["disk", "sqldb", "kv", "s3", "cloud_bucket"]) {
  exercisePayloadStore(name, () => stores.get(name) as PayloadStore);
}
