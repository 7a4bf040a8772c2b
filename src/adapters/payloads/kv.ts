import { type KeyValueStore, VALUE_BYTES_MAX } from "../../ports/key-value.ts";
import type { PayloadRange, PayloadStore } from "../../ports/payload-store.ts";
import type { JsonObject } from "../../schema/words/json.ts";

/** Bucket of the results. It must have no age limit: results are kept as long as their rows say. */
const BUCKET = "flow-results";

/** Payloads as values of a key-value store, up to 1 MiB each. */
export function createKvPayloads(keyValue: KeyValueStore): PayloadStore {
  return {
    kind: "kv",
    bytesMax: VALUE_BYTES_MAX,
    locate: (executionId, name) => ({ bucket: BUCKET, key: `${executionId}.${name}` }),
    async write(location, body) {
      const parts: Uint8Array[] = [];
      for await (const part of body.read()) parts.push(part);
      // No time to live: a result's expiry may change, and expired results are removed by their rows.
      await keyValue.put(BUCKET, keyOf(location), Buffer.concat(parts));
      return location;
    },
    async read(location, range) {
      const found = await keyValue.get(BUCKET, keyOf(location));
      return found && { bytes: found.byteLength, body: partOf(found, range) };
    },
    remove: (location) => keyValue.delete(BUCKET, keyOf(location)),
  };
}

async function* partOf(value: Uint8Array, range: PayloadRange | undefined): AsyncGenerator<Uint8Array> {
  yield range === undefined ? value : value.subarray(range.start, range.end);
}

function keyOf(location: JsonObject): string {
  return String(location["key"]);
}
