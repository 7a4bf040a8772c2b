import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { ExecutionItem } from "../api/types.ts";
import { Labels } from "../parts/labels.tsx";
import { Ago, Lasting } from "../parts/now.tsx";
import { isFinal, Status } from "../parts/status.tsx";
import { useIsNarrow } from "../parts/use-narrow.ts";
import { useRowKeys } from "./row-keys.ts";

/** Heights of a row in pixels, as the style has them: one line, and two where the page is narrow. */
const ROW_PX = 32;
const NARROW_ROW_PX = 56;

/** The list. Only the visible rows and some around them are in the page. `j`, `k` and Enter move through it, `x` marks. */
export function ExecutionTable({
  rows,
  left,
  at,
  onAt,
  onTop,
  onEnd,
  marked,
  onMark,
}: {
  rows: readonly ExecutionItem[];
  /** Those that the filter does not mean any more. */
  left: ReadonlySet<string>;
  /** The row that the keys are at. */
  at: string | undefined;
  onAt(executionId: string | undefined): void;
  /** The first row that is seen; undefined while that is the first of all. */
  onTop(executionId: string | undefined): void;
  /** The last row is near. */
  onEnd(): void;
  marked: ReadonlySet<string>;
  onMark(marked: ReadonlySet<string>): void;
}): ReactNode {
  const { body, items, virtual, before, after } = useVisibleRows(rows, onTop, onEnd);
  const toggle = useCallback(
    (executionId: string) => {
      const next = new Set(marked);
      if (!next.delete(executionId)) next.add(executionId);
      onMark(next);
    },
    [marked, onMark],
  );
  useRowKeys({ rows, at, onAt, toggle, show: (index) => virtual.scrollToIndex(index, { align: "auto" }) });
  return (
    <div className="panel executions">
      <table aria-rowcount={rows.length + 1}>
        <TableHead />
        <tbody ref={body}>
          {before > 0 && <Spacer height={before} />}
          {items.map(({ index }) => {
            const row = rows[index];
            return row === undefined ? null : (
              <Row
                key={row.execution_id}
                row={row}
                position={index + 2}
                isAt={row.execution_id === at}
                hasLeft={left.has(row.execution_id)}
                isMarked={marked.has(row.execution_id)}
                onToggle={toggle}
              />
            );
          })}
          {after > 0 && <Spacer height={after} />}
        </tbody>
      </table>
    </div>
  );
}

/** The rows in sight, and the heights of those before and after them. */
function useVisibleRows(
  rows: readonly ExecutionItem[],
  onTop: (executionId: string | undefined) => void,
  onEnd: () => void,
) {
  const body = useRef<HTMLTableSectionElement>(null);
  const margin = useTopOf(body);
  const isNarrow = useIsNarrow();
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => (isNarrow ? NARROW_ROW_PX : ROW_PX),
    overscan: 15,
    scrollMargin: margin,
    scrollPaddingStart: 48,
    scrollPaddingEnd: 8,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows of another height are measured anew
  useEffect(() => virtual.measure(), [isNarrow, virtual]);
  const items = virtual.getVirtualItems();
  const offset = virtual.scrollOffset ?? 0;
  const top = offset <= margin ? undefined : rows[items.find(({ end }) => end > offset)?.index ?? 0]?.execution_id;
  useEffect(() => onTop(top), [onTop, top]);
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - 20) onEnd();
  }, [last, rows.length, onEnd]);
  const before = (items[0]?.start ?? margin) - margin;
  const after = virtual.getTotalSize() - ((items.at(-1)?.end ?? margin) - margin);
  return { body, items, virtual, before, after };
}

function TableHead(): ReactNode {
  return (
    <thead>
      <tr aria-rowindex={1}>
        <th className="mark">
          <span className="unseen">Mark</span>
        </th>
        <th className="state">Status</th>
        <th>Playbook</th>
        <th className="id wide">Execution</th>
        <th className="when">Started</th>
        <th className="took">Took</th>
        <th className="error wide">Error</th>
      </tr>
    </thead>
  );
}

/** Room of the rows that are not in the page. */
function Spacer({ height }: { height: number }): ReactNode {
  return (
    <tr className="spacer" style={{ height }}>
      <td colSpan={7} />
    </tr>
  );
}

const Row = memo(function Row({
  row,
  position,
  isAt,
  hasLeft,
  isMarked,
  onToggle,
}: {
  row: ExecutionItem;
  position: number;
  isAt: boolean;
  hasLeft: boolean;
  isMarked: boolean;
  onToggle(executionId: string): void;
}): ReactNode {
  const { execution_id: id, path, status, error } = row;
  return (
    <tr
      data-row={id}
      aria-rowindex={position}
      aria-selected={isAt}
      className={`${hasLeft ? "left" : ""} ${isFinal(status) ? "" : "lasts"}`}
    >
      <td className="mark">
        <input type="checkbox" aria-label={`Mark ${id}`} checked={isMarked} onChange={() => onToggle(id)} />
      </td>
      <td className="state">
        <Status of={status} /> {status === "RUNNING" && <span className="number quiet">{row.progress} %</span>}
        {hasLeft && <span className="unseen">, not in this list any more</span>}
      </td>
      <td className="one" title={[path, ...Object.entries(row.labels ?? {}).map((pair) => pair.join("="))].join("\n")}>
        <Link to="/executions/$executionId" params={{ executionId: id }} className="open">
          {path}
        </Link>{" "}
        <span className="quiet">v{row.version}</span> <Labels labels={row.labels} max={2} />
      </td>
      <td className="id wide mono">{id}</td>
      <td className="when number">
        <Ago at={row.started_at} />
      </td>
      <td className="took">
        <Lasting from={row.started_at} to={row.ended_at} />
      </td>
      <td className="one wide" title={error?.message}>
        {error !== null && <span className="quiet">{error.code}</span>} {error?.message}
      </td>
    </tr>
  );
});

/** Where an element begins, from the top of the document; followed while what stands above it grows. */
function useTopOf(element: { current: HTMLElement | null }): number {
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const look = () => {
      const { current } = element;
      if (current !== null) setTop(Math.round(current.getBoundingClientRect().top + window.scrollY));
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, [element]);
  return top;
}
