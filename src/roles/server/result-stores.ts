import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createKvPayloads } from "../../adapters/payloads/kv.ts";
import type { Config } from "../../platform/config/config.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { KeyValueStore } from "../../ports/key-value.ts";
import type { PayloadStore } from "../../ports/payload-store.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** Settings of the stores. */
export type StoreConfig = Pick<
  Config,
  | "s3Endpoint"
  | "s3Bucket"
  | "s3Region"
  | "s3AccessKeyId"
  | "s3SecretAccessKey"
  | "cloudBucket"
  | "cloudBucketEndpoint"
  | "cloudBucketAccountFile"
>;

/** What opening the stores needs. */
export interface StoreDeps {
  config: StoreConfig;
  /** Folder against which a relative file is meant. */
  folder: string;
  /** Values of the broker; undefined: small results stay in the database. */
  keyValue: KeyValueStore | undefined;
  logger: Logger;
  lifecycle: Lifecycle;
}

/**
 * The configured result stores, besides the disk and the database, which always exist. Each is checked: a wrong setting ends
 * the start, a store that does not answer now does not. Throws `FlowError` INVALID_SETTING with every missing setting, and for
 * a setting that a store refuses.
 */
export async function openResultStores(deps: StoreDeps): Promise<PayloadStore[]> {
  const { config, keyValue, lifecycle, logger } = deps;
  const problems = storeProblems(config);
  if (problems.length > 0) throw invalid(problems.join("\n"));
  const stores: PayloadStore[] = keyValue === undefined ? [] : [createKvPayloads(keyValue)];
  for (const open of [openS3, openCloudBucket]) {
    const store = await open(deps);
    if (store === undefined) continue;
    lifecycle.add(`the store ${store.kind}`, () => store.close());
    await look(store, logger);
    stores.push(store);
  }
  if (stores.length > 0) logger.info({ stores: stores.map(({ kind }) => kind) }, "results have further stores");
  return stores;
}

async function openS3({ config }: StoreDeps) {
  const { s3Endpoint, s3Bucket, s3Region, s3AccessKeyId, s3SecretAccessKey } = config;
  if (s3Endpoint === undefined || s3Bucket === undefined) return undefined;
  if (s3AccessKeyId === undefined || s3SecretAccessKey === undefined) return undefined;
  const { createS3Payloads } = await import("../../adapters/payloads/s3.ts");
  return createS3Payloads({
    ...{ endpoint: s3Endpoint, bucket: s3Bucket, region: s3Region },
    ...{ accessKeyId: s3AccessKeyId, secretAccessKey: s3SecretAccessKey },
  });
}

async function openCloudBucket({ config, folder }: StoreDeps) {
  const { cloudBucket, cloudBucketEndpoint, cloudBucketAccountFile } = config;
  if (cloudBucket === undefined || cloudBucketAccountFile === undefined) return undefined;
  const { createBucketPayloads } = await import("../../adapters/payloads/bucket.ts");
  const { parseBucketAccount } = await import("../../adapters/payloads/bucket-token.ts");
  const file = resolve(folder, cloudBucketAccountFile);
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw invalid(`FLOW_CLOUD_BUCKET_ACCOUNT_FILE cannot be read: ${messageOf(cause)}`, cause);
  });
  const account = parseBucketAccount(text, file);
  return createBucketPayloads({ endpoint: cloudBucketEndpoint, bucket: cloudBucket, account, now: Date.now });
}

/** Incomplete settings of stores, a sentence for each: otherwise the first large result would fail. */
export function storeProblems(config: StoreConfig): string[] {
  const groups = [
    {
      FLOW_S3_ENDPOINT: config.s3Endpoint,
      FLOW_S3_BUCKET: config.s3Bucket,
      FLOW_S3_ACCESS_KEY_ID: config.s3AccessKeyId,
      FLOW_S3_SECRET_ACCESS_KEY: config.s3SecretAccessKey,
    },
    { FLOW_CLOUD_BUCKET: config.cloudBucket, FLOW_CLOUD_BUCKET_ACCOUNT_FILE: config.cloudBucketAccountFile },
  ];
  return groups.flatMap((group) => {
    const missing = Object.entries(group).filter(([, value]) => value === undefined);
    if (missing.length === 0 || missing.length === Object.keys(group).length) return [];
    const given = Object.keys(group).filter((name) => !missing.some(([other]) => other === name));
    const wanted = missing.map(([name]) => name).join(", ");
    return [`${given.join(", ")} set without ${wanted}: set all of them, or none`];
  });
}

async function look(store: PayloadStore, logger: Logger): Promise<void> {
  try {
    await store.check?.();
  } catch (error) {
    if (error instanceof FlowError && error.code === "NOT_STORED") throw invalid(error.message, error);
    // It may start after us. Calls that store something meanwhile get an error and retry.
    logger.warn({ err: error, store: store.kind }, "a store of results does not answer yet");
  }
}

function invalid(message: string, cause?: unknown): FlowError {
  return new FlowError("INVALID_SETTING", message, { cause });
}
