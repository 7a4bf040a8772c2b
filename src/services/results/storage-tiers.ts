import type { PayloadStore } from "../../ports/payload-store.ts";
import { RESULT_STORES, type ResultStoreName, storeNamed } from "../../schema/api/results.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** Longest payloads of the tiers, in bytes before compression. */
export interface TierLimits {
  /** `kv_max_bytes`. */
  kvBytesMax: number;
  /** `minio_threshold_bytes`. */
  s3BytesMax: number;
}

/** The stores of a server: `kv` is always there, in the row of the result where it is no other store. */
export type PayloadStores = ReadonlyMap<ResultStoreName, PayloadStore>;

/** How to enable a missing store. */
const MISSING: Readonly<Record<ResultStoreName, string>> = {
  kv: "",
  disk: "",
  sqldb: "",
  s3: "set FLOW_S3_ENDPOINT, FLOW_S3_BUCKET, FLOW_S3_ACCESS_KEY_ID and FLOW_S3_SECRET_ACCESS_KEY on the servers",
  cloud_bucket: "set FLOW_CLOUD_BUCKET and FLOW_CLOUD_BUCKET_ACCOUNT_FILE on the servers",
};

/**
 * Where a payload may go, the first choice first (interface specification, Result storage): by its size with `auto`, else to
 * the store that is named. Tiers that are not there are left out; `disk` is the last resort of `auto`. Throws `FlowError`
 * INVALID_INPUT for an unknown name, NOT_STORED for a store that this server does not have or that holds no such payload.
 */
export function tiersFor(
  wanted: string,
  bytes: number,
  stores: PayloadStores,
  { kvBytesMax, s3BytesMax }: TierLimits,
): ResultStoreName[] {
  const name = storeNamed(wanted);
  if (name === undefined) throw unknownStore(wanted);
  if (name !== "auto") {
    const bytesMax = name === "kv" ? kvBytesMax : (stores.get(name)?.bytesMax ?? Number.POSITIVE_INFINITY);
    if (name !== "kv" && !stores.has(name)) throw missingStore(name);
    if (bytes > bytesMax) throw tooLong(name, bytes, bytesMax);
    return [name];
  }
  const bounds: [ResultStoreName, number][] = [
    ["kv", kvBytesMax],
    ["s3", s3BytesMax],
    ["cloud_bucket", Number.POSITIVE_INFINITY],
    ["disk", Number.POSITIVE_INFINITY],
  ];
  return bounds
    .filter(([tier, bytesMax]) => bytes <= bytesMax && (tier === "kv" || stores.has(tier)))
    .map(([tier]) => tier);
}

/** A name is checked before its payload is read. Throws as {@link tiersFor} does. */
export function checkStore(wanted: string, stores: PayloadStores): void {
  tiersFor(wanted, 0, stores, { kvBytesMax: 1, s3BytesMax: 1 });
}

function unknownStore(wanted: string): FlowError {
  return new FlowError("INVALID_INPUT", `There is no store '${wanted}'; use auto, ${RESULT_STORES.join(", ")}`);
}

function missingStore(name: ResultStoreName): FlowError {
  const message = `The result was not stored: the store '${name}' is not configured here`;
  return new FlowError("NOT_STORED", `${message}; ${MISSING[name]}, or use the store auto`);
}

function tooLong(name: ResultStoreName, bytes: number, bytesMax: number): FlowError {
  const message = `The result was not stored: it is ${bytes.toLocaleString("en")} bytes long`;
  const why = `the store '${name}' holds ${bytesMax.toLocaleString("en")} at most`;
  return new FlowError("NOT_STORED", `${message}, and ${why}; name another store, or auto`);
}
