// biome-ignore-all lint/a11y/useSemanticElements: rows that are drawn where they are seen are no table of the browser's

import { useVirtualizer } from "@tanstack/react-virtual";
import { Minus, Plus, Scan } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Execution } from "../../api/types.ts";
import { useNow } from "../../parts/now.tsx";
import { Details } from "../details/details.tsx";
import { countText } from "../traced/count-text.ts";
import type { Span } from "../traced/pieces.ts";
import type { TraceInput, TraceRow } from "../traced/trace-row.ts";
import { type Moment, useTraced } from "../traced/use-traced.ts";
import { useSelection } from "../use-selection.ts";
import { rowsOf, stepKey } from "./rows.ts";
import { Ruler, ticksOf } from "./ruler.tsx";
import { Legend } from "./trace-bar.tsx";
import { selectionOf, TraceRowView } from "./trace-row-view.tsx";
import { useUnfolded } from "./use-unfolded.ts";
import { useZoom } from "./use-zoom.ts";
import "../../styles/trace.css";

const ROW_PX = 32;
/** Steps from which on there is something to look for among them. */
const FILTERED_MIN = 8;

/** The run as one waterfall, and the details of the row that is chosen. */
export function Trace({ execution, moment }: { execution: Execution; moment: Moment | undefined }): ReactNode {
  const { execution_id: executionId } = execution;
  const selection = useSelection(execution);
  const unfolded = useUnfolded(executionId, selection.in, () => firstOpen(execution, selection));
  const { open } = unfolded;
  const [calls, setCalls] = useState<readonly string[]>([]);
  const [filter, setFilter] = useState("");
  const { root, called, readers } = useTraced(execution, calls, moment);
  const tick = useNow();
  const start = Date.parse(execution.started_at);
  const end = Math.max(start + 1, execution.ended_at === null ? tick : Date.parse(execution.ended_at));
  const zoom = useZoom(start, end);
  const input: TraceInput = { root, called, open, end, isFailedOnly: selection.isFailed, filter };
  // biome-ignore lint/correctness/useExhaustiveDependencies: what it is made of
  const rows = useMemo(() => rowsOf(input), [root, called, open, end, selection.isFailed, filter]);
  const wanted = rows.flatMap((row) => (row.isOpen && row.callId !== undefined ? [row.callId] : [])).join(" ");
  useEffect(() => setCalls(wanted === "" ? [] : wanted.split(" ")), [wanted]);
  unfolded.useRows(rows);
  const toggle = (row: TraceRow) => {
    unfolded.toggle(row.key);
    const span = row.span();
    if (!row.isOpen && span !== undefined) readers.get(row.executionId)?.want(span);
  };
  const reading = readers.get(executionId)?.progress();
  return (
    <div className="trace-split">
      <section className="card trace" aria-label="Trace">
        <header className="trace-tools">
          <Filter execution={execution} filter={filter} onFilter={setFilter} selection={selection} />
          {reading !== undefined && reading.of > 2_000 && (
            <span className="quiet number" role="status">
              Reading the log: {countText(reading.read)} of {countText(reading.of)} events
            </span>
          )}
          <ZoomButtons zoom={zoom} />
        </header>
        <Rows
          rows={rows}
          rootId={executionId}
          selection={selection}
          zoom={zoom}
          start={start}
          onToggle={toggle}
          onFold={(row) => {
            if (row.isOpen) toggle(row);
          }}
        />
        <footer>
          <Legend />
        </footer>
      </section>
      <Details execution={execution} selection={selection} moment={moment} />
    </div>
  );
}

/** A loop of which something failed is unfolded where it is chosen, and that of an item that is. */
function firstOpen(execution: Execution, { step, iteration, in: inId }: ReturnType<typeof useSelection>): string[] {
  const chosen = execution.steps.find(({ name }) => name === step);
  const isTelling = iteration !== undefined || (chosen?.loop?.failed ?? 0) > 0;
  return inId === undefined && step !== undefined && isTelling ? [stepKey(execution.execution_id, step)] : [];
}

function Filter({
  execution,
  filter,
  onFilter,
  selection,
}: {
  execution: Execution;
  filter: string;
  onFilter(text: string): void;
  selection: ReturnType<typeof useSelection>;
}): ReactNode {
  const { steps } = execution;
  const failed = steps.reduce((sum, { loop }) => sum + (loop?.failed ?? 0), 0);
  return (
    <>
      <span className="quiet">
        {countText(steps.length)} {steps.length === 1 ? "step" : "steps"}
      </span>
      {steps.length >= FILTERED_MIN && (
        <input
          data-filter
          value={filter}
          placeholder="Name, or failed, running …"
          aria-label="Find a step by its name or state"
          onChange={({ target }) => onFilter(target.value)}
        />
      )}
      {failed > 0 && (
        <label>
          <input
            type="checkbox"
            checked={selection.isFailed}
            onChange={({ target }) => selection.showFailed(target.checked)}
          />
          failed items only
        </label>
      )}
    </>
  );
}

type Zoom = ReturnType<typeof useZoom>;

function ZoomButtons({ zoom: { by, all, isZoomed } }: { zoom: Zoom }): ReactNode {
  return (
    <div className="row tight zoom">
      <button type="button" className="quiet" aria-label="Zoom in" title="Zoom in (+)" onClick={() => by(0.5)}>
        <Plus className="icon" aria-hidden="true" />
      </button>
      <button
        type="button"
        className="quiet"
        aria-label="Zoom out"
        title="Zoom out (−)"
        disabled={!isZoomed}
        onClick={() => by(2)}
      >
        <Minus className="icon" aria-hidden="true" />
      </button>
      <button
        type="button"
        className="quiet"
        aria-label="Show the whole run"
        title="The whole run"
        disabled={!isZoomed}
        onClick={all}
      >
        <Scan className="icon" aria-hidden="true" />
      </button>
    </div>
  );
}

type Chooses = Pick<ReturnType<typeof useSelection>, "step" | "command" | "iteration" | "in">;

interface RowsProps {
  rows: readonly TraceRow[];
  rootId: string;
  selection: ReturnType<typeof useSelection>;
  zoom: Zoom;
  start: number;
  onToggle(row: TraceRow): void;
  onFold(row: TraceRow): void;
}

function Rows({ rows, rootId, selection, zoom, start, onToggle, onFold }: RowsProps): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const chosen = useChosen(rows, selection, rootId);
  useFirstSight(chosen, (index) => virtual.scrollToIndex(index, { align: "auto" }));
  const go = (index: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (row === undefined) return;
    virtual.scrollToIndex(rows.indexOf(row), { align: "auto" });
    selection.choose(selectionOf(row, rootId));
  };
  const acts = useSameActs(go, onToggle);
  const onKey = (event: KeyboardEvent) => {
    const row = rows[chosen];
    const done = treeKey(event.key, { row, chosen, count: rows.length, go, onToggle, onFold, zoom, rows });
    if (done) event.preventDefault();
  };
  const isSingle = useMemo(() => !rows.some(({ canUnfold }) => canUnfold), [rows]);
  const items = virtual.getVirtualItems();
  const isChosenDrawn = items.some(({ index }) => index === chosen);
  return (
    <>
      <Ruler view={zoom.view} start={start} onZoom={zoom.zoom} />
      <div
        ref={scroller}
        className="trace-rows"
        role="treegrid"
        aria-label="Steps"
        aria-rowcount={rows.length}
        tabIndex={0}
        {...(isChosenDrawn && { "aria-activedescendant": rowId(chosen) })}
        onKeyDown={onKey}
      >
        <div
          role="rowgroup"
          style={{
            height: Math.max(ROW_PX, virtual.getTotalSize()),
            ["--ticks" as string]: tickLines(zoom.view, start),
          }}
        >
          {items.map(({ index, start: top }) => {
            const row = rows[index];
            return (
              row !== undefined && (
                <TraceRowView
                  key={row.key}
                  id={rowId(index)}
                  index={index}
                  row={row}
                  rootId={rootId}
                  view={zoom.view}
                  top={top}
                  isChosen={index === chosen}
                  isSingle={isSingle}
                  {...acts}
                />
              )
            );
          })}
        </div>
      </div>
      {rows.length === 0 && <p className="none quiet">No step has this name or state.</p>}
    </>
  );
}

/** The number of the chosen row; -1 where it is not among them. */
function useChosen(rows: readonly TraceRow[], selection: Chooses, rootId: string): number {
  const { step, command, iteration, in: inId } = selection;
  return useMemo(
    () => rows.findIndex((row) => isChosen(row, { step, command, iteration, in: inId }, rootId)),
    [rows, step, command, iteration, inId, rootId],
  );
}

/** The same functions for each drawing, so that a row is drawn anew only when it has changed. */
function useSameActs(choose: (index: number) => void, toggle: (row: TraceRow) => void) {
  const latest = useRef({ choose, toggle });
  useEffect(() => {
    latest.current = { choose, toggle };
  });
  const onChoose = useCallback((index: number) => latest.current.choose(index), []);
  const onToggle = useCallback((row: TraceRow) => latest.current.toggle(row), []);
  return { onChoose, onToggle };
}

/** A user who opens a link finds the row in sight; later changes of the rows do not move them. */
function useFirstSight(chosen: number, show: (index: number) => void): void {
  const isPlaced = useRef(false);
  useEffect(() => {
    if (isPlaced.current || chosen < 0) return;
    isPlaced.current = true;
    show(chosen);
  });
}

/** A line in each lane beneath each tick of the ruler. */
function tickLines(view: Span, start: number): string {
  const length = view.to - view.from;
  const line = (at: number) => {
    const share = `${((100 * (at - (view.from - start))) / length).toFixed(3)}%`;
    return `linear-gradient(90deg, transparent ${share}, var(--line) ${share} calc(${share} + 1px), transparent calc(${share} + 1px))`;
  };
  const ticks = ticksOf(view.from - start, view.to - start).filter((at) => at > view.from - start);
  return ticks.length === 0 ? "none" : ticks.map(line).join(", ");
}

function rowId(index: number): string {
  return `trace-row-${index}`;
}

function isChosen(
  row: TraceRow,
  {
    step,
    command,
    iteration,
    in: inId,
  }: Pick<ReturnType<typeof useSelection>, "step" | "command" | "iteration" | "in">,
  rootId: string,
): boolean {
  // Of ten thousand rows nearly all are of another step or kind.
  if (row.step !== step || row.kind === "note" || row.kind === "range") return false;
  const of = selectionOf(row, rootId);
  return (
    of.step === step &&
    of.in === inId &&
    of.iteration === iteration &&
    (of.command === command || iteration !== undefined)
  );
}

interface KeyContext {
  row: TraceRow | undefined;
  chosen: number;
  count: number;
  rows: readonly TraceRow[];
  go(index: number): void;
  onToggle(row: TraceRow): void;
  onFold(row: TraceRow): void;
  zoom: Zoom;
}

/** What a key does in the tree; false where it does nothing. */
function treeKey(key: string, { row, chosen, count, rows, go, onToggle, onFold, zoom }: KeyContext): boolean {
  if (key === "ArrowDown" || key === "j") go(chosen + 1);
  else if (key === "ArrowUp" || key === "k") go(chosen - 1);
  else if (key === "Home") go(0);
  else if (key === "End") go(count - 1);
  else if (key === "+") zoom.by(0.5);
  else if (key === "-") zoom.by(2);
  else if (key === "ArrowRight" && row?.canUnfold === true) {
    if (row.isOpen) go(chosen + 1);
    else onToggle(row);
  } else if (key === "ArrowLeft" && row !== undefined) {
    if (row.isOpen) onFold(row);
    else go(parentOf(rows, chosen));
  } else return false;
  return true;
}

function parentOf(rows: readonly TraceRow[], index: number): number {
  const depth = rows[index]?.depth ?? 0;
  for (let above = index - 1; above >= 0; above -= 1) if ((rows[above]?.depth ?? 0) < depth) return above;
  return index;
}
