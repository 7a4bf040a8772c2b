import { AwsV4Signer } from "aws4fetch";
import type { Secret } from "../../platform/crypto/secret.ts";
import type { PayloadStore } from "../../ports/payload-store.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import {
  createObjectClient,
  dropBody,
  type ObjectAnswer,
  type ObjectRequest,
  rangeHeader,
  readingOf,
  refusedBy,
} from "./object-http.ts";

/** Address and account of an S3-compatible service. */
export interface S3Settings {
  /** Without a slash at its end. */
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: Secret;
  secretAccessKey: Secret;
}

/** What one PUT may carry in S3 itself: 5 GiB. Results are held to less (FLOW_RESULT_BYTES_MAX). */
const PUT_BYTES_MAX = 5 * 1024 ** 3;
const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const WHAT = "The store s3";

/**
 * Payloads as objects of an S3-compatible service, one PUT each, addressed by path (`endpoint/bucket/key`), signed with
 * Signature Version 4 over the bytes' own checksum: the service refuses what was altered on its way.
 */
export function createS3Payloads(settings: S3Settings): PayloadStore & { close(): Promise<void> } {
  const { endpoint, bucket, region } = settings;
  const client = createObjectClient(WHAT);
  // Derived keys, one per day.
  const cache = new Map<string, ArrayBuffer>();

  const signed = async (request: Omit<ObjectRequest, "url"> & { key: string; sha256: string }) => {
    const { key, sha256, method, headers, ...rest } = request;
    const url = new URL(`${endpoint}/${bucket}${key === "" ? "" : `/${key}`}`);
    const signer = new AwsV4Signer({
      ...{ url: url.href, method, service: "s3", region, cache },
      accessKeyId: settings.accessKeyId.reveal(),
      secretAccessKey: settings.secretAccessKey.reveal(),
      headers: { ...headers, "x-amz-content-sha256": sha256 },
    });
    const ready = await signer.sign();
    return { ...rest, method, url, headers: Object.fromEntries(ready.headers as Headers) };
  };
  const ask = (method: "GET" | "HEAD" | "DELETE", key: string, headers: Record<string, string> = {}) =>
    client.send(() => signed({ method, key, headers, sha256: EMPTY_SHA256 }));

  return {
    kind: "s3",
    bytesMax: PUT_BYTES_MAX,
    locate: (executionId, name) => ({ bucket, key: `results/${executionId}/${name}` }),
    async write(location, body, about, signal) {
      const headers = { "content-type": about.contentType, "content-length": String(body.bytes) };
      const put = { method: "PUT" as const, key: keyOf(location), headers, sha256: body.sha256, signal };
      const answer = await client.send(() => signed({ ...put, body: () => body.read() }));
      if (answer.status !== 200 && answer.status !== 201) throw await refusedBy(WHAT, "storing", answer);
      await dropBody(answer);
      const etag = answer.headers["etag"];
      return { ...location, ...(typeof etag === "string" && { etag: etag.replace(/^"|"$/g, "") }) };
    },
    read: async (location, range) => readingOf(WHAT, await ask("GET", keyOf(location), rangeHeader(range)), range),
    async remove(location) {
      const answer = await ask("DELETE", keyOf(location));
      if (answer.status !== 204 && answer.status !== 200 && answer.status !== 404) {
        throw await refusedBy(WHAT, "deleting", answer);
      }
      await dropBody(answer);
    },
    async check() {
      const answer = await ask("HEAD", "");
      await dropBody(answer);
      const problem = problemOf(answer, bucket);
      if (problem !== undefined) throw new FlowError("NOT_STORED", `${WHAT} at ${endpoint}: ${problem}`);
    },
    close: () => client.close(),
  };
}

/** A key that may only handle objects is refused the look at the bucket (403): that is no fault. */
function problemOf({ status }: ObjectAnswer, bucket: string): string | undefined {
  if (status === 404) return `there is no bucket '${bucket}'. Make it, or correct FLOW_S3_BUCKET`;
  if (status === 301 || status === 307) return `the bucket '${bucket}' is in another region. Correct FLOW_S3_REGION`;
  if (status === 401) return "the keys are refused. Correct FLOW_S3_ACCESS_KEY_ID and FLOW_S3_SECRET_ACCESS_KEY";
  if (status === 400) return "it refuses the request. Check FLOW_S3_ENDPOINT and FLOW_S3_REGION";
  return undefined;
}

function keyOf(location: JsonObject): string {
  return String(location["key"]);
}
