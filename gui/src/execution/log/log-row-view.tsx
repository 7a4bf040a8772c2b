import { Link } from "@tanstack/react-router";
import { ChevronDown, ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { clockText, durationText } from "../../parts/time.ts";
import { StateSign } from "../state-sign.tsx";
import { countText } from "../traced/count-text.ts";
import type { LogRow } from "./log-rows.ts";
import type { LogLine } from "./sections.ts";

/** How rows are shown. */
export interface LogLook {
  hasTimes: boolean;
  /** What is looked for; "" for nothing. */
  text: string;
  rootId: string;
}

/** One row of the log. */
export function LogRowView({
  row,
  look,
  isFound,
  isChosen,
  onFold,
  onRead,
}: {
  row: LogRow;
  look: LogLook;
  /** It is the match at which the search stands. */
  isFound: boolean;
  isChosen: boolean;
  onFold(key: string): void;
  onRead(eventId: number): void;
}): ReactNode {
  const indent = { paddingLeft: `${12 + row.depth * 18}px` };
  if (row.is === "step") return <StepHead row={row} look={look} isChosen={isChosen} onFold={onFold} indent={indent} />;
  if (row.is === "section") {
    const { section } = row;
    return (
      <div className="log-section" style={indent}>
        <StateSign of={section.isFailed ? "FAILED" : section.endId === undefined ? "RUNNING" : "COMPLETED"} />
        <Link
          from="/executions/$executionId"
          to="."
          search={(before) => ({
            ...before,
            step: section.step,
            command: section.commandId,
            iteration: section.iteration === undefined ? undefined : String(section.iteration),
          })}
          replace
          resetScroll={false}
        >
          {row.title}
        </Link>
        <span className="quiet number">{durationText(Math.max(0, section.to - section.from))}</span>
      </div>
    );
  }
  if (row.is === "omitted") {
    const { endId } = row.section;
    return (
      <div className="log-section" style={indent}>
        <button type="button" className="plain" onClick={() => endId !== undefined && onRead(endId)}>
          This log is long: read it
        </button>
      </div>
    );
  }
  if (row.is === "dropped") {
    return (
      <div className="log-section quiet" style={indent}>
        {countText(row.count)} earlier lines were not kept.
      </div>
    );
  }
  if (row.is === "long") return <LongCall row={row} indent={indent} />;
  return <Line line={row.line} number={row.number} look={look} isFound={isFound} indent={indent} />;
}

/** The log of a called execution is too long to stand within this one. */
function LongCall({
  row,
  indent,
}: {
  row: Extract<LogRow, { is: "long" }>;
  indent: { paddingLeft: string };
}): ReactNode {
  return (
    <div className="log-section" style={indent}>
      <Link to="/executions/$executionId" params={{ executionId: row.executionId }} search={{ tab: "log" }}>
        The log of {row.path} is long: open it
      </Link>
    </div>
  );
}

/** One line of what a task wrote. */
export function Line({
  line,
  number,
  look,
  isFound = false,
  indent,
}: {
  line: LogLine;
  /** Of the lines of its run, from 1. */
  number: number;
  look: Pick<LogLook, "hasTimes" | "text">;
  isFound?: boolean;
  indent?: { paddingLeft: string };
}): ReactNode {
  return (
    <div className={`log-line level-${line.level} ${line.isOwn ? "own" : ""} ${isFound ? "found" : ""}`} style={indent}>
      {look.hasTimes ? (
        <time>{clockText(line.at)}</time>
      ) : (
        <span className="line-number">{line.isOwn ? "" : number}</span>
      )}
      <code>
        <Marked line={line.text} text={look.text} />
      </code>
    </div>
  );
}

function StepHead({
  row,
  look,
  isChosen,
  onFold,
  indent,
}: {
  row: Extract<LogRow, { is: "step" }>;
  look: LogLook;
  isChosen: boolean;
  onFold(key: string): void;
  indent: { paddingLeft: string };
}): ReactNode {
  const Sign = row.isOpen ? ChevronDown : ChevronRight;
  return (
    <div className="log-step" style={indent} aria-current={isChosen ? "true" : undefined}>
      <button
        type="button"
        className="fold"
        aria-expanded={row.isOpen}
        aria-label={`${row.isOpen ? "Fold" : "Unfold"} ${row.step}`}
        onClick={() => onFold(row.key)}
      >
        <Sign className="icon" aria-hidden="true" />
      </button>
      <StateSign of={row.state} />
      <Link
        from="/executions/$executionId"
        to="."
        search={(before) => ({
          ...before,
          step: row.step,
          in: row.executionId === look.rootId ? undefined : row.executionId,
          command: undefined,
          iteration: undefined,
        })}
        replace
        resetScroll={false}
        className="name"
      >
        {row.step}
      </Link>
      <span className="quiet">
        {countText(row.count)} {row.count === 1 ? "line" : "lines"}
      </span>
      <span className="quiet number end">{durationText(Math.max(0, row.to - row.from))}</span>
    </div>
  );
}

/** A line with what is looked for marked. */
function Marked({ line, text }: { line: string; text: string }): ReactNode {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return line;
  const parts: ReactNode[] = [];
  const lower = line.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(line.slice(from, at), <mark key={at}>{line.slice(at, at + wanted.length)}</mark>);
    from = at + wanted.length;
  }
  return [...parts, line.slice(from)];
}
