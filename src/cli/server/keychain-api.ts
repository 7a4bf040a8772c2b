import { KeychainDeleteAnswer, KeychainListAnswer } from "../../schema/api/keychain.ts";
import { callServer } from "./client.ts";
import type { ServerTarget } from "./target.ts";

/* The calls about keychains (interface specification, Keychain), one function each; they throw as `callServer` does. */

const PAGE = "500";

/** The entries of a catalog entry from a cursor on, empty at the beginning. */
export function listKeychain(target: ServerTarget, catalogId: string, cursor: string, signal: AbortSignal) {
  const query = new URLSearchParams({ limit: PAGE, ...(cursor !== "" && { cursor }) });
  const path = `/api/keychain/catalog/${catalogId}?${query}`;
  return callServer(target, { method: "GET", path, answer: KeychainListAnswer, signal });
}

/** Deletes an entry, which need not be there. */
export function deleteKeychainEntry(
  target: ServerTarget,
  catalogId: string,
  { name, query }: { name: string; query: URLSearchParams },
  signal: AbortSignal,
) {
  const path = `/api/keychain/${catalogId}/${encodeURIComponent(name)}?${query}`;
  return callServer(target, { method: "DELETE", path, answer: KeychainDeleteAnswer, signal });
}
