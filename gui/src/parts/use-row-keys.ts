import { type RefObject, useRef, useState } from "react";
import { useKeys } from "./use-keys.ts";

/** `j`, `k` and Enter go through the rows of a table. Gives the row that the keys are at, and the body that has the rows. */
export function useRowKeys(
  count: number,
  open: (row: number) => void,
): [at: number, body: RefObject<HTMLTableSectionElement | null>] {
  const [at, setAt] = useState(-1);
  const body = useRef<HTMLTableSectionElement>(null);
  useKeys((event) => {
    if (event.key === "j" || event.key === "k") {
      const next = Math.max(0, Math.min(count - 1, at + (event.key === "j" ? 1 : -1)));
      setAt(next);
      body.current?.children[next]?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && event.target === document.body && at >= 0 && at < count) open(at);
  });
  return [at, body];
}
