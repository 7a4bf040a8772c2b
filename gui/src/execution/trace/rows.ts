import type { ExecutionAnswer as Execution, StepAnswer as Step } from "../../../../src/schema/api/executions.ts";
import { commandPieces, type Piece, type Span, spanOfPieces } from "../traced/pieces.ts";
import { stepNote, stepState } from "../traced/step-state.ts";
import type { CommandTrace, StepRunTrace } from "../traced/step-traces.ts";
import {
  row,
  type TracedExecution,
  type TraceInput,
  type TraceRow,
  taskRows,
  type WorkOf,
} from "../traced/trace-row.ts";
import { iterationRows } from "./iteration-rows.ts";

/** How deep executions are nested in each other at the most: a playbook may call itself. */
const DEPTH_MAX = 12;

/** The rows of a trace: steps, their attempts and iterations, and what they called, each beneath what it belongs to. */
export function rowsOf(input: TraceInput): TraceRow[] {
  const rows: TraceRow[] = [];
  addSteps(rows, input, input.root, 0);
  return rows;
}

/** The key of a step's row. */
export function stepKey(executionId: string, step: string): string {
  return `${executionId}/${step}`;
}

function addSteps(rows: TraceRow[], input: TraceInput, traced: TracedExecution, depth: number): void {
  const { execution } = traced;
  const filter = depth === 0 ? input.filter.trim().toLowerCase() : "";
  const end = execution.ended_at === null ? input.end : Date.parse(execution.ended_at);
  for (const step of execution.steps) {
    if (filter !== "" && !isFound(step, stepState(execution, step), filter)) continue;
    addStep(rows, input, traced, step, depth, end);
  }
}

function isFound(step: Step, state: string, filter: string): boolean {
  if (step.name.toLowerCase().includes(filter) || state.toLowerCase() === filter) return true;
  return filter === "failed" && (step.loop?.failed ?? 0) > 0;
}

function addStep(
  rows: TraceRow[],
  input: TraceInput,
  traced: TracedExecution,
  step: Step,
  depth: number,
  end: number,
): void {
  const { execution, traces, kinds } = traced;
  const executionId = execution.execution_id;
  const key = stepKey(executionId, step.name);
  const runs = traces.get(step.name) ?? [];
  const toolKinds = kinds.get(step.name) ?? [];
  const calls = runs.flatMap(({ commands }) => commands.flatMap((command) => command.calls));
  const open = openCalls(execution, step.name);
  const callId = step.loop === undefined && calls.length + open.length > 0 ? (calls.at(-1)?.id ?? open[0]) : undefined;
  const isOpen = input.open.has(key);
  const state = stepState(execution, step);
  const span = spanOfStep(step, end);
  const commands = runs.flatMap((run) => run.commands);
  const called = callId === undefined ? undefined : input.called.get(callId)?.execution;
  rows.push(
    row({
      ...{ key, depth, kind: "step", executionId, step: step.name, name: step.name, state, toolKinds, isOpen },
      span: () => span,
      note: stepNote(execution, step, commands, called),
      pieces: () => stepPieces(step, commands, span, state, end),
      canUnfold: depth < DEPTH_MAX && isUnfoldable(step, runs, toolKinds),
      callId,
    }),
  );
  if (!isOpen || depth >= DEPTH_MAX) return;
  if (step.loop !== undefined) {
    rows.push(...iterationRows({ input, traced, step, runs, depth: depth + 1, end, key }));
    addIterationCalls(rows, input, depth);
    return;
  }
  if (runs.length > 1 || commands.length > 1)
    addRuns(rows, input, { executionId, step, runs, depth: depth + 1, end, key });
  else addWork(rows, input, { executionId, step, command: commands[0], calls: open, depth: depth + 1, end, key });
}

/** Executions that an open command of the step has called: the log has them when they have ended. */
function openCalls(execution: Execution, step: string): string[] {
  return (execution.commands ?? []).flatMap((command) => (command.step === step ? (command.children ?? []) : []));
}

function isUnfoldable(step: Step, runs: readonly StepRunTrace[], kinds: readonly string[]): boolean {
  if (step.runs === 0 || step.reused_from !== undefined) return false;
  if (step.loop !== undefined) return step.loop.total !== 0;
  if (step.runs > 1 || step.attempts > 1 || kinds.includes("playbook")) return true;
  const commands = runs.flatMap((run) => run.commands);
  return commands.length > 1 || commands.some(({ tasks, calls }) => tasks.length > 1 || calls.length > 0);
}

/** A row for each run of a step, with its work beneath it. */
function addRuns(rows: TraceRow[], input: TraceInput, of: WorkOf & { runs: readonly StepRunTrace[] }): void {
  const { executionId, step, depth, end, key } = of;
  const many = of.runs.length > 1;
  for (const [index, run] of of.runs.entries()) {
    for (const [place, command] of run.commands.entries()) {
      const own = `${key}/c${command.id}`;
      const name = [many ? `run ${index + 1}` : "", run.commands.length > 1 ? `command ${place + 1}` : ""];
      const isOpen = input.open.has(own);
      const pieces = () => commandPieces(command, end);
      const callId = command.calls.at(-1)?.id;
      rows.push(
        row({
          ...{
            key: own,
            depth,
            kind: "run",
            executionId,
            step: step.name,
            commandId: command.id,
            isOpen,
            callId,
            pieces,
          },
          name: name.filter((part) => part !== "").join(", "),
          note: commandNote(command),
          state: commandState(command),
          span: () => spanOfPieces(pieces()),
          canUnfold: command.tasks.length > 1 || command.calls.length > 0,
        }),
      );
      if (isOpen) addWork(rows, input, { executionId, step, command, calls: [], depth: depth + 1, end, key: own });
    }
  }
}

/** The runs of a command's tasks where there is more than one, and what they called. */
function addWork(
  rows: TraceRow[],
  input: TraceInput,
  of: WorkOf & { command: CommandTrace | undefined; calls: readonly string[] },
): void {
  const { command, depth } = of;
  const tasks = command?.tasks ?? [];
  const calls = [...(command?.calls ?? []).map(({ id }) => id), ...of.calls];
  if (command !== undefined && tasks.length > 1) rows.push(...taskRows(tasks, { ...of, commandId: command.id }));
  const unique = [...new Set(calls)];
  const [only] = unique;
  // Of one call its steps stand beneath the step itself, which is named after what it called.
  if (unique.length === 1 && only !== undefined && tasks.length <= 1) addCalled(rows, input, only, depth, of);
  else for (const id of unique) addCall(rows, input, id, { ...of, commandId: command?.id });
}

/** A row for an execution that was called, where there are several. */
function addCall(
  rows: TraceRow[],
  input: TraceInput,
  id: string,
  of: WorkOf & { commandId: string | undefined },
): void {
  const called = input.called.get(id)?.execution;
  const key = `${of.key}/e${id}`;
  const isOpen = input.open.has(key);
  const span = called && spanOf(called.started_at, called.ended_at, of.end);
  rows.push(
    row({
      ...{ key, depth: of.depth, kind: "call", executionId: of.executionId, step: of.step.name, isOpen },
      span: () => span,
      commandId: of.commandId,
      name: called?.path ?? id,
      note: called === undefined ? "" : `v${called.version}`,
      state: called?.status ?? "PENDING",
      toolKinds: ["playbook"],
      pieces: () => (span === undefined ? [] : [wholePiece(span, called?.status ?? "")]),
      canUnfold: true,
      callId: id,
    }),
  );
  if (isOpen) addCalled(rows, input, id, of.depth + 1, of);
}

/** The steps of an execution that was called. */
function addCalled(rows: TraceRow[], input: TraceInput, id: string, depth: number, of: WorkOf): void {
  const called = input.called.get(id);
  if (called !== undefined) {
    addSteps(rows, input, called, depth);
    return;
  }
  const key = `${of.key}/n${id}`;
  rows.push(
    row({ key, depth, kind: "note", executionId: of.executionId, step: of.step.name, name: "Reading …", state: "" }),
  );
}

/** Beneath an open iteration stands what it called: rows of executions follow their iteration. */
function addIterationCalls(rows: TraceRow[], input: TraceInput, depth: number): void {
  for (let index = rows.length - 1; index >= 0 && (rows[index]?.depth ?? 0) > depth; index -= 1) {
    const found = rows[index];
    if (found?.kind !== "iteration" || !found.isOpen || found.callId === undefined) continue;
    const beneath: TraceRow[] = [];
    const of = { executionId: found.executionId, step: { name: found.step } as Step, depth: found.depth + 1 };
    addCalled(beneath, input, found.callId, found.depth + 1, { ...of, end: input.end, key: found.key });
    rows.splice(index + 1, 0, ...beneath);
  }
}

function commandState({ endedAt, outcome, claims, parkedAt }: CommandTrace): string {
  if (endedAt !== undefined) return outcome === undefined ? "COMPLETED" : outcome.toUpperCase();
  if (parkedAt.length >= claims.length && parkedAt.length > 0) return "WAITING";
  return claims.length > 0 ? "RUNNING" : "PENDING";
}

function commandNote({ claims, tasks, message }: CommandTrace): string {
  const runs = Math.max(0, ...tasks.map(({ run }) => run));
  if (runs > 1) return `attempt ${runs}`;
  return message ?? claims.at(-1)?.worker ?? "";
}

/** A step's own time; undefined while it has not begun. */
export function spanOfStep(step: Step, end: number): Span | undefined {
  return step.started_at === null ? undefined : spanOf(step.started_at, step.ended_at, end);
}

function spanOf(start: string, ended: string | null, end: number): Span {
  const from = Date.parse(start);
  return { from, to: Math.max(from, ended === null ? end : Date.parse(ended)) };
}

const TONES: Readonly<Record<string, Piece["tone"]>> = {
  COMPLETED: "good",
  FAILED: "bad",
  CANCELLED: "quiet",
  RUNNING: "busy",
  WAITING: "warn",
};

function wholePiece(span: Span, state: string): Piece {
  return { kind: "whole", tone: TONES[state] ?? "quiet", ...span };
}

/** A loop's bar is whole, with what failed marked in it; another step's has what its commands did. */
function stepPieces(
  step: Step,
  commands: readonly CommandTrace[],
  span: Span | undefined,
  state: string,
  end: number,
): Piece[] {
  if (span === undefined) return [];
  if (commands.length === 0) return [wholePiece(span, state)];
  if (step.loop === undefined) return commands.flatMap((command) => commandPieces(command, Math.min(end, span.to)));
  const tone = step.loop.failed > 0 && step.ended_at !== null ? "bad" : (TONES[step.status] ?? "busy");
  return [{ kind: "whole", tone, ...span }];
}
