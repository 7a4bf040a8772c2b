import { type RefObject, useEffect, useRef, useState } from "react";
import { isWriting } from "./writing.ts";

/** `j`, `k` and Enter go through the rows of a table. Gives the row that the keys are at, and the body that has the rows. */
export function useRowKeys(
  count: number,
  open: (row: number) => void,
): [at: number, body: RefObject<HTMLTableSectionElement | null>] {
  const [at, setAt] = useState(-1);
  const body = useRef<HTMLTableSectionElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      if (event.key === "j" || event.key === "k") {
        const next = Math.max(0, Math.min(count - 1, at + (event.key === "j" ? 1 : -1)));
        setAt(next);
        body.current?.children[next]?.scrollIntoView({ block: "nearest" });
      } else if (event.key === "Enter" && event.target === document.body && at >= 0 && at < count) open(at);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [count, at, open]);
  return [at, body];
}
