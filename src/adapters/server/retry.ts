import type { Clock } from "../../ports/clock.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isUnavailable, type ServerCall, type ServerConnection, type ServerReply } from "./connection.ts";

/** Delays between two tries: from 0.1 s doubling to 5 s, less a random half. */
const FIRST_MS = 100;
const LONGEST_MS = 5_000;

/** What waiting between two tries needs. */
export interface RetryParts {
  connection: ServerConnection;
  clock: Clock;
  random(): number;
}

/**
 * Repeats a call until the server answers or the signal aborts: the call must be idempotent. Rejects with the signal's reason
 * when it aborts.
 */
export async function callUntilAnswered(
  { connection, clock, random }: RetryParts,
  call: ServerCall,
): Promise<ServerReply> {
  for (let tries = 0; ; tries += 1) {
    const reply = await connection.call(call).catch(unreachable);
    if (reply !== undefined && !isUnavailable(reply)) return reply;
    const delayMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(tries, 10)) * (1 - random() / 2);
    await clock.sleep(Math.max(delayMs, reply?.retryAfterMs ?? 0), call.signal);
  }
}

function unreachable(error: unknown): undefined {
  if (error instanceof FlowError && error.code === "SERVER_UNREACHABLE") return undefined;
  throw error;
}
