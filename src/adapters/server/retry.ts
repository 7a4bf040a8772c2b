import type { Clock } from "../../ports/clock.ts";
import { answerOf } from "../../schema/routes/answer.ts";
import type { AnswerOf, RouteContract } from "../../schema/routes/contract.ts";
import { type RouteInput, requestOf } from "../../schema/routes/request.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CallOptions, isUnavailable, type ServerConnection, serverCall } from "./connection.ts";

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
 * Repeats a call of a route until the server answers or the signal aborts: the call must be idempotent. Throws `FlowError` as
 * `answerOf` does, and the signal's reason when it aborts.
 */
export async function callUntilAnswered<C extends RouteContract>(
  { connection, clock, random }: RetryParts,
  contract: C,
  input: RouteInput<C> & CallOptions,
): Promise<AnswerOf<C>> {
  const request = requestOf(contract, input);
  const call = serverCall(request, input);
  for (let tries = 0; ; tries += 1) {
    const reply = await connection.call(call).catch(unreachable);
    if (reply !== undefined && !isUnavailable(reply)) return answerOf(contract, request, reply);
    const delayMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(tries, 10)) * (1 - random() / 2);
    await clock.sleep(Math.max(delayMs, reply?.retryAfterMs ?? 0), call.signal);
  }
}

function unreachable(error: unknown): undefined {
  if (error instanceof FlowError && error.code === "SERVER_UNREACHABLE") return undefined;
  throw error;
}
