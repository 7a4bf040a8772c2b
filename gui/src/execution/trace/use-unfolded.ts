import { useEffect, useRef, useState } from "react";
import type { TraceRow } from "../traced/trace-row.ts";
import { useCalled } from "../traced/use-traced.ts";

/** Executions above each other that are looked for: no trace is deeper. */
const CHAIN_MAX = 12;

/**
 * The rows that are unfolded. What an address chooses is unfolded once: the loop whose item it is, and the steps through which its
 * execution was called. `first` are keys that are unfolded from the beginning.
 */
export function useUnfolded(rootId: string, inId: string | undefined, first: () => readonly string[]) {
  const [open, setOpen] = useState<ReadonlySet<string>>(() => new Set(first()));
  const chain = useChain(rootId, inId);
  const shown = useRef(new Set<string>());
  return {
    open,
    toggle: (key: string) =>
      setOpen((before) => {
        const next = new Set(before);
        if (!next.delete(key)) next.add(key);
        return next;
      }),
    /** Unfolds the rows through which the chosen execution was called, as they come. */
    useRows(rows: readonly TraceRow[]): void {
      const found = rows.filter(
        ({ key, callId, canUnfold }) =>
          callId !== undefined && chain.includes(callId) && canUnfold && !shown.current.has(key),
      );
      const keys = found.map(({ key }) => key).join("\n");
      useEffect(() => {
        if (keys === "") return;
        for (const key of keys.split("\n")) shown.current.add(key);
        setOpen((before) => new Set([...before, ...keys.split("\n")]));
      }, [keys]);
    },
  };
}

/** The chosen execution, the one that called it, and so on, up to that of the page. */
function useChain(rootId: string, inId: string | undefined): readonly string[] {
  const [chain, setChain] = useState<readonly string[]>(inId === undefined ? [] : [inId]);
  const details = useCalled(chain);
  const top = chain.at(-1);
  const above = details.find(({ execution_id }) => execution_id === top)?.parent_execution_id ?? undefined;
  useEffect(() => {
    if (above === undefined || above === rootId) return;
    setChain((before) => (before.includes(above) || before.length >= CHAIN_MAX ? before : [...before, above]));
  }, [above, rootId]);
  useEffect(() => {
    setChain((before) => (inId === undefined ? [] : before.includes(inId) ? before : [inId]));
  }, [inId]);
  return chain;
}
