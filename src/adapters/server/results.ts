import type { ResultKeeping, SavedResult, WritableResultStore } from "../../ports/result-store.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { refusal, type ServerReply } from "./connection.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Longest silence while a result travels. */
const CALL_MS = 60_000;

/** How the server spells what is said of a payload. */
const NAMES = [
  ["scope", "scope"],
  ["ttl", "ttl"],
  ["store", "store"],
  ["compression", "compression"],
  ["contentType", "content_type"],
] as const satisfies readonly (readonly [keyof ResultKeeping, string])[];

/** The claim for which results are stored. */
export interface StoringClaim {
  readonly work: { command: { command_id: string }; attempt: number };
  readonly signal: AbortSignal;
  /** The server says that the claim is no longer this worker's. */
  giveUp(why: string): void;
}

/**
 * The server's result store, for one claim of a worker: what comes from a claim that was lost is refused there, and the claim is given
 * up here. Both calls are repeated while the server cannot answer. `load` throws as the port says; `save` throws `FlowError`
 * TOO_LARGE, NOT_STORED, CONFLICT.
 */
export function createServerResults(parts: RetryParts, claim: StoringClaim, worker: string): WritableResultStore {
  const { signal } = claim;
  return {
    kind: "kv",
    async save(ref, json, keeping) {
      const { command, attempt } = claim.work;
      const query = new URLSearchParams({ ref, worker, command_id: command.command_id, attempt: String(attempt) });
      for (const [name, spelt] of NAMES) {
        const value = keeping?.[name];
        if (value !== undefined) query.set(spelt, value);
      }
      const path = `/api/results?${query}`;
      const reply = await callUntilAnswered(parts, { method: "PUT", path, body: json, timeoutMs: CALL_MS, signal });
      if (reply.status === 409) claim.giveUp("the server refused its result");
      return saved(reply);
    },
    async load(ref, reader) {
      const query = { ref, sealed: "true", ...(reader !== undefined && { execution_id: reader }) };
      const path = `/api/results/resolve?${new URLSearchParams(query)}`;
      const reply = await callUntilAnswered(parts, { method: "GET", path, timeoutMs: CALL_MS, signal });
      if (reply.status === 200 && reply.body !== undefined) return reply.body;
      throw new FlowError("REFERENCE_NOT_AVAILABLE", refusal(reply).message);
    },
  };
}

function saved(reply: ServerReply): SavedResult {
  if (reply.status !== 200 && reply.status !== 201) throw refusal(reply);
  const body = isJsonObject(reply.body) ? reply.body : {};
  const sha256 = own(body, "sha256");
  const bytes = own(body, "bytes");
  const store = own(body, "store");
  const expiresAt = own(body, "expires_at");
  const compression = own(body, "compression");
  const meta = own(body, "meta");
  if (typeof sha256 !== "string" || typeof bytes !== "number") {
    throw new FlowError(
      "NOT_STORED",
      "The server stored a result and did not say its checksum; is it of this version?",
    );
  }
  return {
    sha256,
    bytes,
    ...(typeof store === "string" && { store }),
    ...(typeof expiresAt === "string" && { expiresAt }),
    ...(typeof compression === "string" && { compression }),
    ...(isJsonObject(meta) && { meta }),
  };
}
