import { Link } from "@tanstack/react-router";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo, type ReactNode, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { ExecutionItem } from "../api/types.ts";
import { Labels, versionText } from "../parts/labels.tsx";
import { Ago, Lasting } from "../parts/now.tsx";
import { isFinal } from "../parts/status.tsx";
import { useIsNarrow } from "../parts/use-narrow.ts";
import { NowOrWhy, PresentStatus, StartedBy, useWhyQueued } from "./present.tsx";
import { useRowKeys } from "./row-keys.ts";
import { type TreeRow, useUnfolding } from "./unfold.ts";

/** Heights of a row in pixels, as the style has them: one line, and a card of two where the page is narrow. */
const ROW_PX = 32;
const NARROW_ROW_PX = 64;
/** Columns of the table. */
const COLUMNS = 7;
/** What is beneath another row is so much further to the right, pixels. */
const INDENT_PX = 18;

/** The list. Only the visible rows and some around them are in the page. `j`, `k` and Enter move through it, `x` marks. */
export function ExecutionTable({
  rows: items,
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
  const { rows, unfolded, toggle: unfold } = useUnfolding(items);
  const { body, visible, virtual, before, after } = useVisibleRows(rows, onTop, onEnd);
  const shown = useMemo(() => rows.flatMap(({ item }) => (item === undefined ? [] : [item])), [rows]);
  const why = useWhyQueued(shown);
  const toggle = useToggle(marked, onMark);
  const show = (id: string) =>
    virtual.scrollToIndex(
      rows.findIndex(({ key }) => key === id),
      { align: "auto" },
    );
  useRowKeys({ rows: shown, at, onAt, toggle, show });
  return (
    <div className="panel executions">
      <table aria-rowcount={rows.length + 1}>
        <TableHead />
        <tbody ref={body}>
          {before > 0 && <Spacer height={before} />}
          {visible.map(({ index }) => {
            const row = rows[index];
            if (row === undefined) return null;
            if (row.item === undefined) return <MoreRow key={row.key} row={row} />;
            const { execution_id: id } = row.item;
            return (
              <Row
                key={row.key}
                row={row.item}
                depth={row.depth}
                position={index + 2}
                isAt={id === at}
                hasLeft={left.has(id)}
                isMarked={marked.has(id)}
                isUnfolded={unfolded.has(id)}
                why={why.get(id)}
                onToggle={toggle}
                onUnfold={unfold}
              />
            );
          })}
          {after > 0 && <Spacer height={after} />}
        </tbody>
      </table>
    </div>
  );
}

/** Marks an execution, or takes the mark away. */
function useToggle(marked: ReadonlySet<string>, onMark: (marked: ReadonlySet<string>) => void) {
  return useCallback(
    (executionId: string) => {
      const next = new Set(marked);
      if (!next.delete(executionId)) next.add(executionId);
      onMark(next);
    },
    [marked, onMark],
  );
}

/** The rows in sight, and the heights of those before and after them. */
function useVisibleRows(rows: readonly TreeRow[], onTop: (executionId: string | undefined) => void, onEnd: () => void) {
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
  // Of what is unfolded the row above it counts, which is one of the list.
  const at = items.find(({ end }) => end > offset)?.index ?? 0;
  const top = offset <= margin ? undefined : rows.slice(0, at + 1).findLast(({ depth }) => depth === 0)?.key;
  useEffect(() => onTop(top), [onTop, top]);
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - 20) onEnd();
  }, [last, rows.length, onEnd]);
  const before = (items[0]?.start ?? margin) - margin;
  const after = virtual.getTotalSize() - ((items.at(-1)?.end ?? margin) - margin);
  return { body, visible: items, virtual, before, after };
}

function TableHead(): ReactNode {
  return (
    <thead>
      <tr aria-rowindex={1}>
        <th className="mark">
          <span className="unseen">Mark</span>
        </th>
        <th className="state">Status</th>
        <th className="playbook">Playbook</th>
        <th className="now wide">Now, or why</th>
        <th className="took">Duration</th>
        <th className="by wide">Started by</th>
        <th className="when">Started</th>
      </tr>
    </thead>
  );
}

/** Room of the rows that are not in the page. */
function Spacer({ height }: { height: number }): ReactNode {
  return (
    <tr className="spacer" style={{ height }}>
      <td colSpan={COLUMNS} />
    </tr>
  );
}

/** Beneath an execution that called more than are shown. */
function MoreRow({ row: { moreOf, depth } }: { row: TreeRow }): ReactNode {
  return (
    <tr>
      <td colSpan={COLUMNS} style={{ paddingLeft: 50 + depth * INDENT_PX }}>
        <Link to="/executions" search={{ parent: moreOf }}>
          All called executions
        </Link>
      </td>
    </tr>
  );
}

interface RowProps {
  row: ExecutionItem;
  depth: number;
  position: number;
  isAt: boolean;
  hasLeft: boolean;
  isMarked: boolean;
  isUnfolded: boolean;
  /** Why it waits for a worker. */
  why: string | undefined;
  onToggle(executionId: string): void;
  onUnfold(executionId: string): void;
}

const Row = memo(function Row(props: RowProps): ReactNode {
  const { row, depth, position, isAt, hasLeft, isMarked, isUnfolded, why, onToggle, onUnfold } = props;
  const { execution_id: id, path, status, error, labels = {} } = row;
  const hint = [path, `execution ${id}`, ...Object.entries(labels).map((pair) => pair.join("="))].join("\n");
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
        <PresentStatus of={row} why={why} />
        {hasLeft && <span className="unseen">, not in this list any more</span>}
      </td>
      <td className="playbook" title={hint} style={{ paddingLeft: 12 + depth * INDENT_PX }}>
        {row.has_called === true && <Unfold id={id} isUnfolded={isUnfolded} onUnfold={onUnfold} />}
        <Link to="/executions/$executionId" params={{ executionId: id }} className="open">
          {path}
        </Link>{" "}
        <span className="quiet">{versionText(row.version)}</span> <Labels labels={labels} max={2} />
      </td>
      <td className="now wide" title={error?.message}>
        <NowOrWhy of={row} />
      </td>
      <td className="took">
        <Lasting from={row.started_at} to={row.ended_at} />
      </td>
      <td className="by wide">
        <StartedBy by={row.started_by} />
      </td>
      <td className="when number">
        <Ago at={row.started_at} />
      </td>
    </tr>
  );
});

/** Shows what it called beneath it. */
function Unfold({
  id,
  isUnfolded,
  onUnfold,
}: {
  id: string;
  isUnfolded: boolean;
  onUnfold(id: string): void;
}): ReactNode {
  const Sign = isUnfolded ? ChevronDown : ChevronRight;
  return (
    <button
      type="button"
      className="unfold"
      aria-expanded={isUnfolded}
      aria-label={`What ${id} called`}
      title="What it called"
      onClick={() => onUnfold(id)}
    >
      <Sign className="icon" aria-hidden="true" />
    </button>
  );
}

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
