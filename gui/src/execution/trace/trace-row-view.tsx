// biome-ignore-all lint/a11y/useSemanticElements: rows that are drawn where they are seen are no table of the browser's
// biome-ignore-all lint/a11y/useFocusableInteractive: the tree has the focus, and names its active row
// biome-ignore-all lint/a11y/useKeyWithClickEvents: the keys of a row are heard by the tree
import { Link } from "@tanstack/react-router";
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo, type ReactNode } from "react";
import { durationText } from "../../parts/time.ts";
import { StateSign } from "../state-sign.tsx";
import { ToolIcon } from "../tool-icon.tsx";
import type { Span } from "../traced/pieces.ts";
import type { TraceRow } from "../traced/trace-row.ts";
import { barText, TraceBar } from "./trace-bar.tsx";

/** Deeper rows are not indented further. */
const INDENTED_MAX = 8;

/** What of the address a row chooses. */
export interface Selection {
  step: string;
  command: string | undefined;
  iteration: string | undefined;
  in: string | undefined;
}

/** What a row chooses; `rootId` is the execution of the page. */
export function selectionOf(row: TraceRow, rootId: string): Selection {
  return {
    step: row.step,
    command: row.commandId,
    iteration: row.iteration === undefined ? undefined : String(row.iteration),
    in: row.executionId === rootId ? undefined : row.executionId,
  };
}

/** One row: what it is, what it did when, and how long it took. */
export const TraceRowView = memo(
  ({
    id,
    index,
    row,
    rootId,
    view,
    top,
    isChosen,
    isSingle,
    onChoose,
    onToggle,
  }: {
    id: string;
    /** Its number, from 0. */
    index: number;
    row: TraceRow;
    rootId: string;
    view: Span;
    /** How far from the top it stands, pixels. */
    top: number;
    isChosen: boolean;
    /** No row of the trace can be unfolded: no room is kept for it. */
    isSingle: boolean;
    onChoose(index: number): void;
    onToggle(row: TraceRow): void;
  }): ReactNode => {
    const pieces = row.pieces();
    const span = row.span();
    const isOff = row.state === "UNREACHED" || row.state === "SKIPPED" || row.state === "PENDING";
    return (
      <div
        id={id}
        role="row"
        className={`trace-row ${isOff ? "off" : ""}`}
        style={{ top }}
        data-kind={row.kind}
        aria-level={row.depth + 1}
        aria-selected={isChosen}
        {...(row.canUnfold && { "aria-expanded": row.isOpen })}
        onClick={() => onChoose(index)}
      >
        <div
          role="gridcell"
          className="trace-name"
          style={{ paddingLeft: `${Math.min(row.depth, INDENTED_MAX) * 20}px` }}
        >
          {!isSingle && <Fold row={row} onToggle={() => onToggle(row)} />}
          <StateSign of={row.state} />
          {row.kind === "step" || row.kind === "call" ? <ToolIcon kinds={row.toolKinds} /> : null}
          <Name row={row} rootId={rootId} />
          <span className="note" title={row.note}>
            {row.note}
          </span>
        </div>
        <div role="gridcell" className="trace-lane" aria-label={barText(pieces, span)}>
          <TraceBar pieces={pieces} view={view} />
        </div>
        <div role="gridcell" className="trace-time number">
          {span !== undefined && durationText(span.to - span.from)}
        </div>
      </div>
    );
  },
);

function Name({ row, rootId }: { row: TraceRow; rootId: string }): ReactNode {
  if (row.kind === "note") return <span className="quiet">{row.name}</span>;
  return (
    <Link
      from="/executions/$executionId"
      to="."
      search={(before) => ({ ...before, ...selectionOf(row, rootId) })}
      replace
      resetScroll={false}
      className="name"
      tabIndex={-1}
      title={row.name}
    >
      {row.name}
    </Link>
  );
}

function Fold({ row, onToggle }: { row: TraceRow; onToggle(): void }): ReactNode {
  if (!row.canUnfold) return <span className="fold" />;
  const Sign = row.isOpen ? ChevronDown : ChevronRight;
  return (
    <button
      type="button"
      className="fold"
      tabIndex={-1}
      aria-label={`${row.isOpen ? "Fold" : "Unfold"} ${row.name}`}
      onClick={(event) => {
        event.stopPropagation();
        onToggle();
      }}
    >
      <Sign className="icon" aria-hidden="true" />
    </button>
  );
}
