import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "hono";
import { createPlaces } from "../../platform/concurrency/places.ts";
import { createRateLimit } from "../../platform/concurrency/rate-limit.ts";
import { networkOf } from "../../platform/http/client-address.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { listening } from "./client-signal.ts";
import { peerOf, type RouteEnvironment } from "./request-context.ts";

/** Slows callers down who send wrong tokens. */
export interface WrongTokens {
  /**
   * To be called before a wrong token is answered: after some of them from one address it takes a second. Throws `FlowError`
   * RATE_LIMITED instead where too many of that address wait already.
   */
  hold(c: Context<RouteEnvironment>): Promise<void>;
}

/** Wrong tokens of one address within a minute that are answered at once: those of a person, or of a few programs. */
const PER_MINUTE = 10;
/** How long an answer is held back after that. */
const HOLD_MS = 1_000;
/** Answers that are held back at a time: of one address, and in all. Each is a connection. */
const HELD_MAX = 8;
const HELD_IN_ALL_MAX = 256;
/** Addresses in memory: some 2 MB. */
const ADDRESSES_MAX = 10_000;

/**
 * Right tokens never come here: they are recognised before, and are neither counted nor delayed, whatever else their address
 * sends. So no one can lock out a caller behind the same proxy. `stopping` ends every wait.
 */
export function createWrongTokens(stopping: AbortSignal): WrongTokens {
  const limit = createRateLimit({
    uses: PER_MINUTE,
    withinMs: 60_000,
    keysMax: ADDRESSES_MAX,
    now: () => performance.now(),
  });
  const take = createPlaces({ perKey: HELD_MAX, inAll: HELD_IN_ALL_MAX });
  return {
    async hold(c) {
      const peer = peerOf(c);
      if (peer === undefined) return;
      const network = networkOf(peer);
      const waitMs = limit(network);
      if (waitMs === 0) return;
      const giveBack = take(network);
      if (typeof giveBack === "string") throw tooMany(waitMs);
      const { signal, done } = listening(c, stopping);
      try {
        await sleep(HOLD_MS, undefined, { signal }).catch(() => undefined);
      } finally {
        done();
        giveBack();
      }
    },
  };
}

function tooMany(waitMs: number): FlowError {
  const seconds = Math.ceil(waitMs / 1_000);
  const message = `The token is not one that is known here, and this address has sent too many wrong ones. Correct it, and try again in ${seconds} s`;
  return new FlowError("RATE_LIMITED", message, { detail: { retry_after_seconds: seconds } });
}
