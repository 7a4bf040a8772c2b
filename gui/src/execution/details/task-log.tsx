import { type ReactNode, useEffect, useRef } from "react";
import { CopyButton } from "../../parts/copy.tsx";
import type { TaskLines } from "../summary/task-runs.ts";
import { countText } from "../traced/count-text.ts";

/** Pixels from the end within which new lines pull the view along. */
const NEAR_PX = 40;

/** A task's log. While it runs, the view stays at the end unless the user scrolls away. */
export function TaskLog({
  log: { lines: written, dropped },
  isLive,
  shown,
}: {
  log: TaskLines;
  isLive: boolean;
  /** A text that the page shows beside it: a log that ends with it is shown without it. */
  shown: string | undefined;
}): ReactNode {
  const lines = withoutEnd(written, shown);
  const isCut = lines.length < written.length;
  const box = useRef<HTMLElement>(null);
  const isAtEnd = useRef(true);
  const count = lines.length + dropped;
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is the new lines that move the view
  useEffect(() => {
    const element = box.current;
    if (element !== null && isLive && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [count, isLive]);
  return (
    <div className="part">
      <div className="part-head">
        <h3>
          Log <span className="quiet">{isLive ? "live" : linesText(count, isCut)}</span>
        </h3>
        {lines.length > 0 && <CopyButton label="Copy log" text={() => written.join("\n")} />}
      </div>
      {dropped > 0 && <p className="quiet">{countText(dropped)} earlier lines were not kept.</p>}
      {lines.length > 0 && (
        <section
          className="log"
          ref={box}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
          tabIndex={0}
          aria-label="Log of the task"
          onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
            isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
          }}
        >
          <pre>{lines.join("\n")}</pre>
        </section>
      )}
    </div>
  );
}

function linesText(count: number, isCut: boolean): string {
  const text = `${countText(count)} line${count === 1 ? "" : "s"}`;
  return isCut ? `${text}, then the traceback` : text;
}

function withoutEnd(lines: readonly string[], end: string | undefined): readonly string[] {
  const text = end?.trimEnd().split("\n") ?? [];
  const from = lines.length - text.length;
  return text.length > 0 && from >= 0 && text.every((line, index) => lines[from + index] === line)
    ? lines.slice(0, from)
    : lines;
}
