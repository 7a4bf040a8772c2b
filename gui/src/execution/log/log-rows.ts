import type { ExecutionAnswer as Execution } from "../../../../src/schema/api/executions.ts";
import { countText } from "../traced/count-text.ts";
import { stepState } from "../traced/step-state.ts";
import type { Level, LogLine, LogSection } from "./sections.ts";

/** An execution with the sections of its log. */
export interface LoggedExecution {
  execution: Execution;
  sections: readonly LogSection[];
  /** Its log is too long to be read as a whole. */
  isLong?: boolean;
}

/** One row of the log: the head of a step, the head of one of its runs, or a line. */
export type LogRow =
  | {
      is: "step";
      key: string;
      depth: number;
      executionId: string;
      step: string;
      state: string;
      count: number;
      isOpen: boolean;
      from: number;
      to: number;
    }
  | { is: "section"; key: string; depth: number; section: LogSection; title: string }
  | { is: "line"; key: string; depth: number; line: LogLine; number: number }
  | { is: "omitted"; key: string; depth: number; section: LogSection; executionId: string }
  | { is: "long"; key: string; depth: number; executionId: string; path: string }
  | { is: "dropped"; key: string; depth: number; count: number };

/** What rows are made of. */
export interface LogInput {
  root: LoggedExecution;
  /** By the ids of executions that were called. */
  called: ReadonlyMap<string, LoggedExecution>;
  /** Keys of steps that are folded. */
  folded: ReadonlySet<string>;
  /** Lines that are less grave are left out. */
  least: Level;
}

const GRAVITY: Readonly<Record<Level, number>> = { debug: 0, info: 1, warn: 2, error: 3 };
/** A playbook may call itself. */
const DEPTH_MAX = 12;

/** The log of a whole run, what it called included. */
export function logRowsOf(input: LogInput): LogRow[] {
  const rows: LogRow[] = [];
  addExecution(rows, input, input.root, 0);
  return rows;
}

function addExecution(rows: LogRow[], input: LogInput, logged: LoggedExecution, depth: number): void {
  const { execution, sections, isLong } = logged;
  const { execution_id: executionId, path } = execution;
  if (isLong === true) {
    rows.push({ is: "long", key: `${executionId}/long`, depth, executionId, path });
    return;
  }
  const bySteps = new Map<string, LogSection[]>();
  for (const section of sections) {
    const list = bySteps.get(section.step);
    if (list === undefined) bySteps.set(section.step, [section]);
    else list.push(section);
  }
  for (const step of execution.steps) {
    const own = bySteps.get(step.name);
    if (own === undefined) continue;
    const key = `${execution.execution_id}/${step.name}`;
    const isOpen = !input.folded.has(key);
    const place = rows.length;
    let count = 0;
    for (const section of own) count += addSection(rows, input, execution, section, own.length > 1, depth + 1, isOpen);
    if (count === 0 && input.least !== "debug" && input.least !== "info") {
      rows.length = place;
      continue;
    }
    rows.splice(place, 0, {
      ...{ is: "step", key, depth, executionId: execution.execution_id, step: step.name, count, isOpen },
      state: stepState(execution, step),
      from: own[0]?.from ?? 0,
      to: Math.max(...own.slice(-50).map(({ to }) => to)),
    });
  }
}

/** Adds the rows of a section where its step is open, and gives how many lines it has. */
function addSection(
  rows: LogRow[],
  input: LogInput,
  execution: Execution,
  section: LogSection,
  hasHead: boolean,
  depth: number,
  isOpen: boolean,
): number {
  const key = `${execution.execution_id}/${section.key}`;
  const shown = section.lines.filter(({ level }) => GRAVITY[level] >= GRAVITY[input.least]);
  const children = depth < DEPTH_MAX ? section.calls.flatMap((id) => input.called.get(id) ?? []) : [];
  if (isOpen) {
    const isTold = hasHead && (shown.length > 0 || section.isOmitted || children.length > 0);
    if (isTold) rows.push({ is: "section", key, depth, section, title: titleOf(section) });
    if (section.isOmitted) {
      rows.push({ is: "omitted", key: `${key}/o`, depth, section, executionId: execution.execution_id });
    }
    if (section.dropped > 0) rows.push({ is: "dropped", key: `${key}/d`, depth, count: section.dropped });
    for (const [index, line] of shown.entries()) {
      rows.push({ is: "line", key: `${key}/${index}`, depth, line, number: section.dropped + index + 1 });
    }
    for (const child of children) addExecution(rows, input, child, depth);
  }
  return shown.length;
}

/** Which run of its step it is: `item 7 · attempt 2`. */
export function titleOf({ iteration, task, step, run }: LogSection): string {
  const parts = iteration === undefined ? [] : [`item ${countText(iteration)}`];
  if (task !== step) parts.push(task);
  if (run > 1 || parts.length === 0) parts.push(`attempt ${run}`);
  return parts.join(" · ");
}

/** Numbers of the rows whose line has the text, in any case. */
export function matchesOf(rows: readonly LogRow[], text: string): number[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  return rows.flatMap((row, index) =>
    row.is === "line" && row.line.text.toLowerCase().includes(wanted) ? [index] : [],
  );
}

/** The rows as a text, for a file. */
export function logText(rows: readonly LogRow[]): string {
  return rows
    .map((row) => {
      const indent = "  ".repeat(row.depth);
      if (row.is === "step") return `${indent}== ${row.step}`;
      if (row.is === "section") return `${indent}-- ${row.title}`;
      if (row.is === "line") return `${indent}${new Date(row.line.at).toISOString()} ${row.line.text}`;
      if (row.is === "dropped") return `${indent}(${row.count} earlier lines were not kept)`;
      if (row.is === "long")
        return `${indent}(the log of ${row.path}, execution ${row.executionId}, is long and not here)`;
      return `${indent}(not read)`;
    })
    .join("\n");
}
