import { answerOf, refusalIn, strangeAnswer } from "../../schema/routes/answer.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { requestOf } from "../../schema/routes/request.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isUnavailable, type ServerConnection } from "./connection.ts";

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
    const request = requestOf(CATALOG_ROUTES.entry, { params: { catalog_id: catalogId } });
    // Not the signal of the claim that asks first: others wait for the same entry.
    const reply = await connection.call({ ...request, timeoutMs: CALL_MS, signal: AbortSignal.timeout(2 * CALL_MS) });
    if (reply.status === 404) return undefined;
    if (!isUnavailable(reply)) return answerOf(CATALOG_ROUTES.entry, request, reply);
    const cause = refusalIn(reply) ?? strangeAnswer(request, reply.status);
    throw new FlowError("UNAVAILABLE", cause.message, { cause });
  };
}
