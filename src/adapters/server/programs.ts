import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { isUnavailable, refusal, type ServerConnection } from "./connection.ts";

/** How long a catalog entry may take: a document has 1 MiB at most. */
const CALL_MS = 30_000;

/** Text of a catalog entry. */
export interface CatalogEntry {
  path: string;
  version: number;
  content: string;
}

/**
 * Reads catalog entries of the server by their id; undefined if not found. Throws `FlowError` UNAVAILABLE or SERVER_UNREACHABLE
 * when a retry may help.
 */
export function createEntryReader(
  connection: ServerConnection,
): (catalogId: string) => Promise<CatalogEntry | undefined> {
  return async (catalogId) => {
    const reply = await connection.call({
      method: "GET",
      path: `/api/catalog/entries/${encodeURIComponent(catalogId)}`,
      timeoutMs: CALL_MS,
      // Not the claim's that asks first: others wait for the same entry.
      signal: AbortSignal.timeout(2 * CALL_MS),
    });
    if (reply.status === 404) return undefined;
    const entry = entryOf(reply.body);
    if (reply.status === 200 && entry !== undefined) return entry;
    const error = refusal(reply);
    if (isUnavailable(reply) || reply.status === 200)
      throw new FlowError("UNAVAILABLE", error.message, { cause: error });
    throw error;
  };
}

function entryOf(body: unknown): CatalogEntry | undefined {
  if (!isJsonObject(body)) return undefined;
  const path = own(body, "path");
  const version = own(body, "version");
  const content = own(body, "content");
  const isEntry = typeof path === "string" && typeof version === "number" && typeof content === "string";
  return isEntry ? { path, version, content } : undefined;
}
