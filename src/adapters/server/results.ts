import type { Clock } from "../../ports/clock.ts";
import type { ResultKeeping, WritableResultStore } from "../../ports/result-store.ts";
import type { Attachment } from "../../ports/work-server.ts";
import { isRefusal } from "../../schema/routes/answer.ts";
import type { RouteInput } from "../../schema/routes/request.ts";
import { RESULT_ROUTES } from "../../schema/routes/results.ts";
import { isClaimRequired } from "../../schema/rules/claim-refusals.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Longest silence while a result travels. */
const CALL_MS = 60_000;

/** The claim for which results are stored. */
export interface StoringClaim {
  readonly work: { command: { command_id: string }; attempt: number };
  readonly signal: AbortSignal;
  /** The server says that the claim is no longer this worker's. */
  giveUp(why: string): void;
  /** Results that go with the next report, by their references. */
  readonly attachments: Map<string, Attachment>;
}

/** Longest result that goes with its report. Several fit into one, whose body has 2 MiB at most. */
export const ATTACHED_BYTES_MAX = 512 * 1_024;

/**
 * The server's result store, for one claim of a worker: what comes from a claim that was lost is refused there, and the claim is given
 * up here. Both calls are repeated while the server cannot answer. `load` throws as the port says; `save` throws `FlowError`
 * TOO_LARGE, NOT_STORED, CONFLICT.
 */
export function createServerResults(
  parts: RetryParts & { attaching?: Pick<Attaching, "isOn"> },
  claim: StoringClaim,
  worker: string,
): WritableResultStore {
  const { signal } = claim;
  return {
    kind: "kv",
    async save(ref, json, keeping = {}) {
      const attachment = parts.attaching?.isOn() === true ? attachmentOf(ref, json, keeping) : undefined;
      if (attachment !== undefined) {
        claim.attachments.set(ref, attachment);
        return { sha256: "", bytes: attachment.payload.byteLength };
      }
      const { command, attempt } = claim.work;
      const { contentType: content_type, sensitive: _, withReport: __, isFile: ___, ...kept } = keeping;
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
      const attachment = claim.attachments.get(ref);
      if (attachment !== undefined) return JSON.parse(new TextDecoder().decode(attachment.payload)) as Json;
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

/** The payload as it goes with its report; undefined where it must be stored by a request of its own. */
function attachmentOf(
  ref: string,
  json: string | Uint8Array<ArrayBuffer>,
  keeping: ResultKeeping,
): Attachment | undefined {
  const { withReport, store, scope = "permanent", contentType, ttl, compression } = keeping;
  // Others end with a step or an execution, which may happen in the commit that writes them.
  if (withReport !== true || store !== undefined || scope !== "permanent" || contentType !== undefined)
    return undefined;
  if (json.length > ATTACHED_BYTES_MAX) return undefined;
  const payload = typeof json === "string" ? Buffer.from(json) : json;
  if (payload.byteLength > ATTACHED_BYTES_MAX) return undefined;
  return { ref, payload, ...defined({ ttl, compression }) };
}

/** Whether large results go with reports. */
export interface Attaching {
  isOn(): boolean;
  /** A server has refused a report with attachments. */
  refused(): void;
}

/** After a refusal results are stored by requests of their own for so long: the server may be of an older version, or keep them elsewhere. */
const OFF_MS = 60_000;

/** On, until a server refuses it. */
export function createAttaching(clock: Pick<Clock, "now">): Attaching {
  let offUntil = 0;
  return {
    isOn: () => clock.now() >= offUntil,
    refused() {
      offUntil = clock.now() + OFF_MS;
    },
  };
}
