import type { Clock } from "../../ports/clock.ts";
import type { ClaimAnswer, ClaimedWork, Unavailable, WorkServer } from "../../ports/work-server.ts";
import { messageOf } from "../../schema/words/errors.ts";
import { backOffMs } from "../backoff.ts";
import { after } from "../deadline.ts";
import type { Slots } from "../slots.ts";
import type { WorkerEvent } from "../worker-event.ts";

/** How long the server may wait for a command: the longest that it allows. */
const WAIT_MS = 30_000;
/** Most commands of one claim. */
const CLAIM_MAX = 256;
/** How long to wait for the last answer: the server sends it as soon as it knows that this worker drains. */
const LAST_ANSWER_MS = 1_000;

/** What {@link runClaimLoop} needs. */
export interface ClaimLoopDeps {
  server: Pick<WorkServer, "claim">;
  clock: Clock;
  random(): number;
  slots: Slots;
  start(commands: ClaimedWork[]): void;
  /** The server does not know this worker. */
  unknown(): void;
  emit(event: WorkerEvent): void;
}

/**
 * Asks for as many commands as there are free slots, one request at a time, until the signal aborts. Requests that fail are
 * repeated with increasing waits for as long as it takes. The request under way when the signal aborts is not cut off at once:
 * commands in an answer that is never read would be claimed a second time, and count as attempts. Resolves when no more
 * commands can arrive.
 */
export async function runClaimLoop(parts: ClaimLoopDeps, signal: AbortSignal): Promise<void> {
  const { clock, random, emit } = parts;
  const last = new AbortController();
  signal.addEventListener("abort", () => after(clock, LAST_ANSWER_MS, () => last.abort(signal.reason)), { once: true });
  let tries = 0;
  while (!signal.aborted) {
    try {
      // Again: a command that was lent out may have taken its slot back before this went on.
      while (parts.slots.free() < 1) await parts.slots.untilFree(signal);
      const answer = await claim(parts, last.signal);
      if (signal.aborted) return;
      if (answer.status === "ok") {
        if (tries > 0) emit({ type: "server.back", doing: "claiming", tries });
        tries = 0;
        continue;
      }
      if (signal.aborted) return;
      if (answer.status === "unknown") parts.unknown();
      tries += 1;
      const delayMs = backOffMs(tries, random, answer.status === "unavailable" ? answer.retryAfterMs : 0);
      emit({ type: "server.unavailable", doing: "claiming", tries, delayMs, message: answer.message });
      await clock.sleep(delayMs, signal);
    } catch (error) {
      if (!signal.aborted) emit({ type: "fault", doing: "claiming", error });
    }
  }
}

async function claim({ server, slots, start }: ClaimLoopDeps, signal: AbortSignal): Promise<ClaimAnswer> {
  const limit = Math.min(CLAIM_MAX, slots.free());
  slots.promise(limit);
  try {
    const answer = await server.claim({ limit, waitMs: WAIT_MS }, signal).catch((error: unknown): Unavailable => {
      signal.throwIfAborted();
      return { status: "unavailable", message: messageOf(error) };
    });
    if (answer.status === "ok") start(answer.commands);
    return answer;
  } finally {
    // Not before the commands that came have taken their slots.
    slots.unpromise(limit);
  }
}
