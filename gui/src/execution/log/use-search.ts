import { useEffect, useState } from "react";
import { type RunFilter, scanRuns } from "./run-log.ts";

/** Ends of runs with the text that are kept; more are counted as this many. */
const FOUND_MAX = 10_000;
/** A search begins when nothing was typed for so long, milliseconds. */
const SETTLE_MS = 300;

/** The runs in whose lines a text is, by the events of their ends, in their order. */
export interface Found {
  runs: readonly number[];
  /** Runs that were looked at so far; undefined: all of them were. */
  looked: number | undefined;
  problem: string | undefined;
}

const NOTHING: Found = { runs: [], looked: undefined, problem: undefined };

/** Looks for a text in the lines of all runs that ended up to the event `until`, as it was when the text was typed. */
export function useSearch(executionId: string, { step, isFailed }: RunFilter, text: string, until: number): Found {
  const [found, setFound] = useState<Found>(NOTHING);
  const wanted = text.trim().toLowerCase();
  // biome-ignore lint/correctness/useExhaustiveDependencies: what has come since is not looked at before the next search
  useEffect(() => {
    setFound({ ...NOTHING, ...(wanted !== "" && { looked: 0 }) });
    if (wanted === "") return undefined;
    const aborter = new AbortController();
    const { signal } = aborter;
    const runs: number[] = [];
    let looked = 0;
    const look = async () => {
      await scanRuns(
        executionId,
        { step, isFailed },
        until,
        (sections) => {
          looked += sections.length;
          for (const { endId, lines } of sections) {
            if (runs.length === FOUND_MAX || endId === undefined) continue;
            if (lines.some((line) => line.text.toLowerCase().includes(wanted))) runs.push(endId);
          }
          setFound({ runs: [...runs], looked, problem: undefined });
        },
        signal,
      );
      setFound({ runs, looked: undefined, problem: undefined });
    };
    const timer = setTimeout(() => {
      look().catch((error: Error) => {
        if (!signal.aborted) setFound({ runs, looked: undefined, problem: error.message });
      });
    }, SETTLE_MS);
    return () => {
      clearTimeout(timer);
      aborter.abort();
    };
  }, [executionId, step, isFailed, wanted]);
  return found;
}
