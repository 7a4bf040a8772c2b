import { lifetimeMs } from "../../schema/rules/durations.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { createSecret, type Secret } from "../crypto/secret.ts";
import { countSetting, setting } from "../setting.ts";

const MEBIBYTE = 1_048_576;

/** Settings of stored results: how long, how large, and where (interface specification, Result storage). */
export const RESULT_SETTINGS = {
  resultTtlMs: setting({
    name: "FLOW_RESULT_TTL_DEFAULT",
    meaning: "How long stored results are kept: 90s, 15m, 1h, 30d",
    default: "30d",
    parse: (text) => {
      const ttl = lifetimeMs(text ?? "30d");
      if (ttl !== undefined) return ttl;
      throw invalid("FLOW_RESULT_TTL_DEFAULT", `must be a time such as 30d or 12h, got '${text}'`);
    },
  }),
  resultBytesMax: countSetting("FLOW_RESULT_BYTES_MAX", "Longest result that a worker may store, bytes", 64 * MEBIBYTE),
  filesBytesMax: countSetting(
    "FLOW_EXECUTION_FILES_BYTES_MAX",
    "Most bytes of all files that the tasks of one execution may store",
    1_024 * MEBIBYTE,
    1_048_576 * MEBIBYTE,
  ),
  // No more than a value of a key-value bucket may have.
  resultKvBytesMax: countSetting(
    "FLOW_RESULT_KV_MAX_BYTES",
    "Longest result in the store kv; longer ones go to the next tier of auto",
    MEBIBYTE,
    MEBIBYTE,
  ),
  resultS3BytesMax: countSetting(
    "FLOW_RESULT_MINIO_THRESHOLD_BYTES",
    "Longest result that auto puts into the store s3; longer ones go to cloud_bucket",
    16 * MEBIBYTE,
  ),
  s3Endpoint: setting({
    name: "FLOW_S3_ENDPOINT",
    meaning: "Address of an S3-compatible service: the store s3; with FLOW_S3_BUCKET and both keys",
    default: "none: there is no store s3",
    parse: (text) => address("FLOW_S3_ENDPOINT", text),
  }),
  s3Bucket: setting({
    name: "FLOW_S3_BUCKET",
    meaning: "Bucket of the store s3; it must exist",
    default: "none",
    parse: (text) => bucket("FLOW_S3_BUCKET", text),
  }),
  s3Region: setting({
    name: "FLOW_S3_REGION",
    meaning: "Region that requests to the store s3 are signed for",
    default: "us-east-1",
    parse: (text) => {
      if (text === undefined || /^[a-z0-9-]{1,64}$/.test(text)) return text ?? "us-east-1";
      throw invalid("FLOW_S3_REGION", `must be of small letters, digits and '-', got '${text}'`);
    },
  }),
  s3AccessKeyId: key("FLOW_S3_ACCESS_KEY_ID", "Id of the access key of the store s3"),
  s3SecretAccessKey: key("FLOW_S3_SECRET_ACCESS_KEY", "Secret of the access key of the store s3"),
  cloudBucket: setting({
    name: "FLOW_CLOUD_BUCKET",
    meaning: "Bucket of the store cloud_bucket (Cloud Storage's JSON API); with FLOW_CLOUD_BUCKET_ACCOUNT_FILE",
    default: "none: there is no store cloud_bucket",
    parse: (text) => bucket("FLOW_CLOUD_BUCKET", text),
  }),
  cloudBucketEndpoint: setting({
    name: "FLOW_CLOUD_BUCKET_ENDPOINT",
    meaning: "Address of the JSON API of the store cloud_bucket",
    default: "https://storage.googleapis.com",
    parse: (text) => address("FLOW_CLOUD_BUCKET_ENDPOINT", text) ?? "https://storage.googleapis.com",
  }),
  cloudBucketAccountFile: setting({
    name: "FLOW_CLOUD_BUCKET_ACCOUNT_FILE",
    meaning: "JSON file of the service account that may write to FLOW_CLOUD_BUCKET",
    default: "none",
    parse: (text) => text,
  }),
} as const;

function key(name: string, meaning: string) {
  return setting({
    name,
    meaning,
    default: "none",
    secret: true,
    parse: (text): Secret | undefined => {
      if (text === undefined) return undefined;
      if (/^[\x21-\x7e]+$/.test(text)) return createSecret(text);
      throw invalid(name, "must be of visible ASCII characters, without spaces");
    },
  });
}

function address(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isAlone = url?.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (!isAlone || !/^https?:$/.test(url.protocol)) {
    throw invalid(name, "must be an http or https address, without user, password or query");
  }
  return url.href.replace(/\/+$/, "");
}

function bucket(name: string, text: string | undefined): string | undefined {
  if (text === undefined || /^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/.test(text)) return text;
  throw invalid(name, `must be a bucket's name: small letters, digits, '-', '_' and '.', got '${text}'`);
}

function invalid(name: string, why: string): FlowError {
  return new FlowError("INVALID_SETTING", `${name} ${why}`);
}
