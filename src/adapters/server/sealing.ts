import { untilAborted } from "../../platform/concurrency/until-aborted.ts";
import { createSealer } from "../../platform/crypto/sealing.ts";
import type { SealerSource } from "../../ports/sealing.ts";
import { SEALING_ROUTES } from "../../schema/routes/credentials.ts";
import { isClaimRequired } from "../../schema/rules/claim-refusals.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Sealer } from "../../schema/words/sealed.ts";
import { inNameOf } from "./connection.ts";
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
export function createServerSealing(
  parts: RetryParts,
  stopping: AbortSignal,
): (claim: { secret?: string }) => SealerSource {
  const kept = new Map<string, Promise<Sealer>>();
  const ask = async (executionId: string, secret: string | undefined): Promise<Sealer> => {
    const params = { execution_id: executionId };
    const claimed = { ...parts, connection: inNameOf(parts.connection, secret) };
    const { keys } = await callUntilAnswered(claimed, SEALING_ROUTES.key, {
      params,
      timeoutMs: CALL_MS,
      signal: stopping,
    });
    const [first, ...rest] = keys.map(({ id, key }) => ({ id, key: Buffer.from(key, "base64") }));
    // The schema wants one.
    if (first === undefined) throw new FlowError("INTERNAL", "There is no key for sealing");
    return createSealer([first, ...rest]);
  };
  const find = (rootExecutionId: string, secret: string | undefined): Promise<Sealer> => {
    const known = kept.get(rootExecutionId);
    // The claim that asked first may have ended since: then the next one asks for itself.
    const sealer =
      known?.catch((error: unknown) => {
        if (isClaimRequired(error)) return ask(rootExecutionId, secret);
        throw error;
      }) ?? ask(rootExecutionId, secret);
    kept.delete(rootExecutionId);
    kept.set(rootExecutionId, sealer);
    sealer.catch(() => {
      if (kept.get(rootExecutionId) === sealer) kept.delete(rootExecutionId);
    });
    const [oldest] = kept.keys();
    if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
    return sealer;
  };
  return ({ secret }) => ({
    async sealerOf({ rootExecutionId }, signal) {
      const sealer = find(rootExecutionId, secret);
      return signal === undefined ? await sealer : await untilAborted(sealer, signal);
    },
  });
}
