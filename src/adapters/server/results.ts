import type { WritableResultStore } from "../../ports/result-store.ts";
import { isRefusal } from "../../schema/routes/answer.ts";
import type { RouteInput } from "../../schema/routes/request.ts";
import { RESULT_ROUTES } from "../../schema/routes/results.ts";
import { isClaimRequired } from "../../schema/rules/claim-refusals.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Longest silence while a result travels. */
const CALL_MS = 60_000;

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
    async save(ref, json, keeping = {}) {
      const { command, attempt } = claim.work;
      const { contentType: content_type, sensitive: _, ...kept } = keeping;
      const place = { ref, worker, command_id: command.command_id, attempt };
      // As the author wrote it: the server says what it does not know.
      const query = { ...place, content_type, ...kept } as RouteInput<typeof RESULT_ROUTES.save>["query"];
      const input = { query, json, timeoutMs: CALL_MS, signal };
      try {
        const saved = await callUntilAnswered(parts, RESULT_ROUTES.save, input);
        const { sha256, bytes, store, expires_at: expiresAt, compression, meta } = saved;
        return { sha256, bytes, store, expiresAt, ...(compression !== null && { compression }), meta };
      } catch (error) {
        const isLost = isRefusal(error, 409) || isClaimRequired(error);
        if (!signal.aborted && isLost) claim.giveUp("the server refused its result");
        throw error;
      }
    },
    async load(ref, reader) {
      const query = { ref, sealed: "true", execution_id: reader } as const;
      try {
        return await callUntilAnswered(parts, RESULT_ROUTES.resolveApi, { query, timeoutMs: CALL_MS, signal });
      } catch (error) {
        signal.throwIfAborted();
        throw new FlowError("REFERENCE_NOT_AVAILABLE", messageOf(error), { cause: error });
      }
    },
  };
}
