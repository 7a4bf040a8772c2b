import type { PayloadStore } from "../../ports/payload-store.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type JsonObject, own } from "../../schema/words/json.ts";
import { type BucketAccount, createBucketTokens } from "./bucket-token.ts";
import {
  createObjectClient,
  dropBody,
  type ObjectAnswer,
  type ObjectRequest,
  rangeHeader,
  readingOf,
  refusedBy,
} from "./object-http.ts";

/** The bucket, its address, and the account. */
export interface BucketSettings {
  /** Without a slash at its end. */
  endpoint: string;
  bucket: string;
  account: BucketAccount;
  /** Milliseconds since 1970. */
  now(): number;
}

const WHAT = "The store cloud_bucket";

/** Payloads as objects of Cloud Storage's JSON API, for a service account whose key signs for access tokens. */
export function createBucketPayloads(settings: BucketSettings): PayloadStore & { close(): Promise<void> } {
  const { endpoint, bucket } = settings;
  const client = createObjectClient(WHAT);
  const tokens = createBucketTokens(settings.account, client, settings.now);

  /** Once more with a fresh token where the one at hand is refused: it may have been withdrawn. */
  const send = async (path: string, request: Omit<ObjectRequest, "url">): Promise<ObjectAnswer> => {
    const url = new URL(endpoint + path);
    const make = async () => ({
      ...request,
      url,
      headers: { ...request.headers, authorization: `Bearer ${await tokens.token(request.signal)}` },
    });
    const answer = await client.send(make);
    if (answer.status !== 401) return answer;
    await dropBody(answer);
    tokens.forget();
    return client.send(make);
  };
  const pathOf = (location: JsonObject) =>
    `/storage/v1/b/${encodeURIComponent(bucket)}/o/${encodeURIComponent(String(location["object"]))}`;

  return {
    kind: "cloud_bucket",
    locate(executionId, name) {
      const object = `results/${executionId}/${name}`;
      return { bucket, object, uri: `gs://${bucket}/${object}` };
    },
    async write(location, body, about, signal) {
      const query = new URLSearchParams({ uploadType: "media", name: String(location["object"]) });
      const headers = { "content-type": about.contentType, "content-length": String(body.bytes) };
      const path = `/upload/storage/v1/b/${encodeURIComponent(bucket)}/o?${query}`;
      const answer = await send(path, { method: "POST", headers, signal, body: () => body.read() });
      if (answer.status !== 200) throw await refusedBy(WHAT, "storing", answer);
      const size = sizeIn(await answer.body.text());
      if (size !== undefined && size !== body.bytes) {
        throw new FlowError("UNAVAILABLE", `${WHAT} kept ${size} of ${body.bytes} bytes of a result. Try again`);
      }
      return location;
    },
    async read(location, range) {
      const request = { method: "GET" as const, headers: rangeHeader(range) };
      return readingOf(WHAT, await send(`${pathOf(location)}?alt=media`, request), range);
    },
    async remove(location) {
      const answer = await send(pathOf(location), { method: "DELETE", headers: {} });
      if (answer.status !== 204 && answer.status !== 200 && answer.status !== 404) {
        throw await refusedBy(WHAT, "deleting", answer);
      }
      await dropBody(answer);
    },
    async check() {
      const answer = await send(`/storage/v1/b/${encodeURIComponent(bucket)}`, { method: "GET", headers: {} });
      await dropBody(answer);
      // An account that may only handle objects is refused the look at the bucket (403): that is no fault.
      const problem =
        answer.status === 404
          ? `there is no bucket '${bucket}'. Make it, or correct FLOW_CLOUD_BUCKET`
          : answer.status === 401
            ? "the service account is refused. Check FLOW_CLOUD_BUCKET_ACCOUNT_FILE"
            : undefined;
      if (problem !== undefined) throw new FlowError("NOT_STORED", `${WHAT} at ${endpoint}: ${problem}`);
    },
    close: () => client.close(),
  };
}

/** What the service says that it has: it writes 64-bit numbers as text. */
function sizeIn(text: string): number | undefined {
  try {
    const body: unknown = JSON.parse(text);
    const size = isJsonObject(body) ? own(body, "size") : undefined;
    return typeof size === "string" ? Number(size) : undefined;
  } catch {
    return undefined;
  }
}
