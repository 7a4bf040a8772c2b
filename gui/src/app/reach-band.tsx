import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { queries } from "../api/queries.ts";
import { missed, onReach, reached, unreachableSince } from "../api/reach.ts";
import { addressOf } from "../api/session.ts";
import { useNow } from "../parts/now.tsx";
import { clockText, durationText } from "../parts/time.ts";

/** Time to the first try, and the longest between two, milliseconds. */
const FIRST_MS = 1_000;
const LONGEST_MS = 10_000;
/** A slower answer counts as none. */
const ANSWER_MS = 5_000;

/** Says that the server is gone, since when, and when it is tried again. When it answers, everything is read anew. */
export function ReachBand(): ReactNode {
  const since = useSyncExternalStore(onReach, unreachableSince);
  return since === undefined ? null : <Band since={since} />;
}

function Band({ since }: { since: number }): ReactNode {
  const [tryAt, setTryAt] = useState(() => Date.now() + FIRST_MS);
  const [round, setRound] = useState(0);
  const now = useNow();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a further round begins the tries again
  useEffect(() => {
    const ended = new AbortController();
    void untilReached(setTryAt, ended.signal);
    const begin = () => setRound((before) => before + 1);
    window.addEventListener("online", begin);
    return () => {
      ended.abort();
      window.removeEventListener("online", begin);
    };
  }, [round]);
  const leftMs = tryAt - now;
  return (
    <div className="band tone-bad" role="alert">
      <span>
        The server cannot be reached since {clockText(since).slice(0, 8)} ({durationText(Math.max(0, now - since))}).
        What is shown is what was known then.
      </span>
      <span className="number" aria-hidden="true">
        {leftMs > 500 ? `Trying again in ${Math.ceil(leftMs / 1_000)} s` : "Trying …"}
      </span>
      <button type="button" onClick={() => setRound((before) => before + 1)}>
        Try now
      </button>
    </div>
  );
}

/** Asks again and again, at longer and longer intervals. Any answer is one: a refusal too comes from a server. */
async function untilReached(onNext: (at: number) => void, signal: AbortSignal): Promise<void> {
  for (let pauseMs = 0; !signal.aborted; pauseMs = Math.min(LONGEST_MS, Math.max(FIRST_MS, pauseMs * 2))) {
    onNext(Date.now() + pauseMs);
    await pause(pauseMs, signal);
    if (signal.aborted) return;
    try {
      const { status } = await fetch(addressOf("/api/health"), {
        signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
        credentials: "same-origin",
        cache: "no-store",
      });
      if (status === 502 || status === 504) continue;
      reached();
      await queries.invalidateQueries();
      return;
    } catch {
      if (!signal.aborted) missed();
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
