import { createHash } from "node:crypto";
import { createKeyRing, type KeyRing } from "../../../src/platform/crypto/key-ring.ts";

/** `FLOW_ENCRYPTION_KEYS` of keys with these ids: the same id is always the same key. */
export function encryptionKeys(...ids: readonly string[]): string {
  return ids.map((id) => `${id}:${keyOf(id).toString("base64")}`).join(",");
}

/** What a server with a database of its own is told at least. */
export function ownDatabase(url: string): { FLOW_DATABASE_URL: string; FLOW_ENCRYPTION_KEYS: string } {
  return { FLOW_DATABASE_URL: url, FLOW_ENCRYPTION_KEYS: encryptionKeys("k1") };
}

/** A ring of keys with these ids, the first of which encrypts. */
export function keyRing(first = "k1", ...others: readonly string[]): KeyRing {
  return createKeyRing([{ id: first, key: keyOf(first) }, ...others.map((id) => ({ id, key: keyOf(id) }))]);
}

function keyOf(id: string): Buffer {
  return createHash("sha256").update(`a key of tests: ${id}`).digest();
}
