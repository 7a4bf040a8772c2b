import { type ReactNode, useSyncExternalStore } from "react";
import { agoText, durationText, momentText } from "./time.ts";

/** One clock for the page, ticking once a second while it is visible. */

let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Milliseconds since 1970, a second old at the most. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** How long ago; the moment itself on hover. */
export function Ago({ at }: { at: string }): ReactNode {
  const ms = Date.parse(at);
  const text = agoText(ms, useNow());
  return (
    <time dateTime={at} title={momentText(ms)}>
      {text}
    </time>
  );
}

/** How long something took, or has taken by now. */
export function Lasting({ from, to }: { from: string; to: string | null }): ReactNode {
  const current = useNow();
  const ms = (to === null ? Math.max(current, Date.parse(from)) : Date.parse(to)) - Date.parse(from);
  return <span className="number">{durationText(ms)}</span>;
}
