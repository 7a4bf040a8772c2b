import type { LeaseAnswer, LeaseRequest } from "../../ports/keychain.ts";
import type { LeaseOutcome, LeaseQuery } from "../../repositories/keychain/leases.ts";

/** Waiting for the right to resolve an entry, by its cache key. */
export interface KeychainLeases {
  /** See `KeychainStore.lease`; answered `held` too when the signal is aborted. */
  ask(cacheKey: string, ask: LeaseRequest, signal: AbortSignal): Promise<LeaseAnswer>;
  /** This server has set the entry, or ended its lease: waiters check again. */
  changed(cacheKey: string): void;
}

/** Polling interval, for changes without a signal: another server ended the lease, or its holder died. */
const LOOK_MS = 250;

/**
 * Single flight per entry. All who wait for one entry at this server share one look at a time: 200 workers that meet one
 * expired token are one statement each quarter of a second, not 200.
 *
 * @param lookUp asks the database once.
 */
export function createKeychainLeases(
  lookUp: (cacheKey: string, query: LeaseQuery) => Promise<LeaseOutcome>,
): KeychainLeases {
  const queues = new Map<string, Queue>();
  return {
    ask(cacheKey, ask, signal) {
      const queue =
        queues.get(cacheKey) ??
        createQueue(
          (query) => lookUp(cacheKey, query),
          () => queues.delete(cacheKey),
        );
      queues.set(cacheKey, queue);
      return queue.join(ask, signal);
    },
    changed: (cacheKey) => queues.get(cacheKey)?.look(),
  };
}

interface Queue {
  join(ask: LeaseRequest, signal: AbortSignal): Promise<LeaseAnswer>;
  /** Poll at once. */
  look(): void;
}

/** A waiter for the lease. */
interface Waiting {
  ask: LeaseRequest;
  /** On the monotonic clock: then the answer is `held`. */
  until: number;
  signal: AbortSignal;
  answer(answer: LeaseAnswer): void;
  fail(error: unknown): void;
}

/** The waiters for one entry, in order of arrival; `onEmpty` is called when the last one leaves. */
function createQueue(lookUp: (query: LeaseQuery) => Promise<LeaseOutcome>, onEmpty: () => void): Queue {
  const waiting = new Set<Waiting>();
  let wake = () => {};
  let isNotified = false;
  let isRunning = false;
  /** Until the next poll is due, a waiter's time is over, or {@link look} is called. */
  const pause = async (lookAt: number) => {
    const next = Math.min(lookAt, ...[...waiting].map(({ until }) => until)) - performance.now();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, next));
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  };

  const run = async () => {
    isRunning = true;
    for (let lookAt = 0; waiting.size > 0; ) {
      if (!isNotified && performance.now() < lookAt) {
        await pause(lookAt);
        // A waiter that joined meanwhile has requested a poll; that comes first.
        if (!isNotified) expire([...waiting]);
        continue;
      }
      isNotified = false;
      try {
        lookAt = (await lookOnce(waiting, lookUp)) === "again" ? 0 : performance.now() + LOOK_MS;
      } catch (error) {
        // The database is away: waiters get the error, and retry as after every such answer.
        for (const one of [...waiting]) one.fail(error);
      }
    }
    isRunning = false;
    onEmpty();
  };

  const look = () => {
    isNotified = true;
    wake();
  };
  return {
    look,
    join: (ask, signal) =>
      new Promise((resolve, reject) => {
        const one: Waiting = {
          ask,
          signal,
          until: performance.now() + ask.waitMs,
          answer(answer) {
            if (waiting.delete(one)) resolve(answer);
          },
          fail(error) {
            if (waiting.delete(one)) reject(error);
          },
        };
        signal.addEventListener("abort", look, { once: true });
        waiting.add(one);
        if (isRunning) look();
        else void run();
      }),
  };
}

/** Polls once on behalf of the first waiter; the answer resolves all waiters that were queued when it started. */
async function lookOnce(
  waiting: ReadonlySet<Waiting>,
  lookUp: (query: LeaseQuery) => Promise<LeaseOutcome>,
): Promise<"again" | "later"> {
  for (const one of [...waiting]) if (one.signal.aborted) one.answer(HELD);
  const there = [...waiting];
  const [first] = there;
  if (first === undefined) return "later";
  let query = first;
  let outcome = await lookUp(first.ask);
  // A holder that asks again, because its answer got lost on the way, need not stand first in line.
  const again = outcome.status === "held" ? holderOf(there, outcome.holder) : undefined;
  if (again !== undefined && again !== first) {
    query = again;
    outcome = await lookUp(again.ask);
  }
  if (outcome.status === "granted") {
    query.answer(outcome);
    return "again";
  }
  if (outcome.status !== "held") for (const one of there) one.answer(outcome);
  expire(there);
  return "later";
}

const HELD: LeaseAnswer = { status: "held" };

function holderOf(all: readonly Waiting[], holder: string | undefined): Waiting | undefined {
  return all.find(({ ask }) => ask.holder === holder);
}

function expire(all: readonly Waiting[]): void {
  const now = performance.now();
  for (const one of all) if (one.until <= now) one.answer(HELD);
}
