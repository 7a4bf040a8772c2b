import { untilAborted } from "../../platform/concurrency/until-aborted.ts";
import { createSealer } from "../../platform/crypto/sealing.ts";
import type { SealerSource } from "../../ports/sealing.ts";
import { SEALING_ROUTES } from "../../schema/routes/credentials.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Sealer } from "../../schema/words/sealed.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Trees whose keys are kept; the least recently used one goes. */
const KEPT_MAX = 1_000;
/** Longest silence of the server. */
const CALL_MS = 30_000;

/**
 * Sealing with the server's keys: requested when a command of a tree first seals or opens something, once for all commands of
 * that tree, and retried until the server answers or `stopping` aborts. `sealerOf` throws `FlowError` NOT_FOUND for an
 * execution that is gone, ENCRYPTION.
 */
export function createServerSealing(parts: RetryParts, stopping: AbortSignal): SealerSource {
  const kept = new Map<string, Promise<Sealer>>();
  const ask = async (executionId: string): Promise<Sealer> => {
    const params = { execution_id: executionId };
    const { keys } = await callUntilAnswered(parts, SEALING_ROUTES.key, {
      params,
      timeoutMs: CALL_MS,
      signal: stopping,
    });
    const [first, ...rest] = keys.map(({ id, key }) => ({ id, key: Buffer.from(key, "base64") }));
    // The schema wants one.
    if (first === undefined) throw new FlowError("INTERNAL", "There is no key for sealing");
    return createSealer([first, ...rest]);
  };
  const find = (rootExecutionId: string): Promise<Sealer> => {
    const known = kept.get(rootExecutionId);
    const sealer = known ?? ask(rootExecutionId);
    kept.delete(rootExecutionId);
    kept.set(rootExecutionId, sealer);
    if (known === undefined) sealer.catch(() => kept.delete(rootExecutionId));
    const [oldest] = kept.keys();
    if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
    return sealer;
  };
  return {
    async sealerOf({ rootExecutionId }, signal) {
      const sealer = find(rootExecutionId);
      return signal === undefined ? await sealer : await untilAborted(sealer, signal);
    },
  };
}
