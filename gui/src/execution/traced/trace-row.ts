import type { ExecutionAnswer as Execution, StepAnswer as Step } from "../../../../src/schema/api/executions.ts";
import type { Piece, Span } from "./pieces.ts";
import type { StepTraces, TaskTrace } from "./step-traces.ts";

/** An execution with what its log tells, and the tools of its steps. */
export interface TracedExecution {
  execution: Execution;
  traces: StepTraces;
  /** Its whole log was read: what is not in `traces` did not happen. */
  isRead: boolean;
  /** Kinds of the tools of each step; empty where the playbook may not be seen. */
  kinds: ReadonlyMap<string, readonly string[]>;
}

/** One line of the trace. */
export interface TraceRow {
  key: string;
  /** How deep it is nested, from 0. */
  depth: number;
  kind: "step" | "run" | "attempt" | "iteration" | "range" | "call" | "note";
  /** Whose step it is, and what the details show of it. */
  executionId: string;
  step: string;
  commandId: string | undefined;
  iteration: number | undefined;
  name: string;
  note: string;
  /** A state of `Status`; `UNREACHED` and `REUSED` too. */
  state: string;
  toolKinds: readonly string[];
  /** From its beginning to its end; undefined while it has not begun. Costly for many rows, hence only for those in sight. */
  span(): Span | undefined;
  /** What it did when. */
  pieces(): Piece[];
  canUnfold: boolean;
  isOpen: boolean;
  /** An execution that is shown beneath it when it is open. */
  callId: string | undefined;
}

/** What the rows are made of. */
export interface TraceInput {
  root: TracedExecution;
  /** Executions that were called and are unfolded, by their ids; absent while they are read. */
  called: ReadonlyMap<string, TracedExecution>;
  /** Keys of rows that are unfolded. */
  open: ReadonlySet<string>;
  /** Now, or when the execution ended, milliseconds since 1970. */
  end: number;
  /** Only what failed, of iterations. */
  isFailedOnly: boolean;
  /** Part of a step's name, or a state; "" for all. */
  filter: string;
}

/** Makes a row; what is not given is empty. */
export function row(
  of: Pick<TraceRow, "key" | "depth" | "kind" | "executionId" | "step" | "name" | "state"> & Partial<TraceRow>,
): TraceRow {
  return {
    commandId: undefined,
    iteration: undefined,
    note: "",
    toolKinds: [],
    span: () => undefined,
    pieces: () => [],
    canUnfold: false,
    isOpen: false,
    callId: undefined,
    ...of,
  };
}

/** Whose work rows are made of, and where they stand. */
export interface WorkOf {
  executionId: string;
  step: Step;
  depth: number;
  end: number;
  key: string;
}

/** A row for each run of a task: an attempt, where it was tried again. */
export function taskRows(
  tasks: readonly TaskTrace[],
  of: Omit<WorkOf, "end"> & { commandId: string; iteration?: number | undefined },
): TraceRow[] {
  const names = new Set(tasks.map(({ task }) => task));
  return tasks.map((task) => {
    const piece: Piece = { kind: "ran", tone: task.isFailed ? "bad" : "good", from: task.from, to: task.to };
    return row({
      key: `${of.key}/t${task.eventId}`,
      kind: "attempt",
      name: names.size > 1 ? `${task.task}${task.run > 1 ? `, attempt ${task.run}` : ""}` : `attempt ${task.run}`,
      note: task.code ?? "",
      state: task.isFailed ? "FAILED" : "COMPLETED",
      span: () => piece,
      pieces: () => [piece],
      ...{ depth: of.depth, executionId: of.executionId, step: of.step.name, commandId: of.commandId },
      iteration: of.iteration,
    });
  });
}
