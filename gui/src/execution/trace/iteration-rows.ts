import type { StepAnswer as Step } from "../../../../src/schema/api/executions.ts";
import { countText } from "../traced/count-text.ts";
import { iterationPieces, type Piece, type Span, spanOfPieces } from "../traced/pieces.ts";
import type { IterationTrace, StepRunTrace } from "../traced/step-traces.ts";
import { row, type TracedExecution, type TraceInput, type TraceRow, taskRows } from "../traced/trace-row.ts";

/** Iterations that stand one by one; of more of them, neighbours that came out alike are one row. */
const SINGLE_MAX = 30;
/** Neighbours that are worth a row of their own together. */
const RANGE_MIN = 4;
/** The longest range: what it unfolds to is still looked through. */
const RANGE_MAX = 1_000;

/** Of which step's loop the rows are wanted, and where they stand. */
export interface IterationsOf {
  input: TraceInput;
  traced: TracedExecution;
  step: Step;
  runs: readonly StepRunTrace[];
  depth: number;
  end: number;
  /** Of the step's row. */
  key: string;
}

/** The iterations of a loop: those that failed or run stand alone, those that went well beside each other are one row. */
export function iterationRows(of: IterationsOf): TraceRow[] {
  const { runs, step, depth, key, traced, input } = of;
  if (runs.length <= 1) return runRows(of, runs[0], key);
  return runs.flatMap((run, index) => {
    const own = `${key}/r${run.id}`;
    const isOpen = input.open.has(own);
    const known = [...run.iterations.values()];
    const failed = known.filter(({ isFailed }) => isFailed).length;
    const parent = row({
      ...{ key: own, depth, kind: "run", executionId: traced.execution.execution_id, step: step.name, isOpen },
      name: `run ${index + 1}`,
      note: `${countText(known.length)} items${failed > 0 ? `, ${failed} failed` : ""}`,
      state: failed > 0 ? "FAILED" : known.every(({ endedAt }) => endedAt !== undefined) ? "COMPLETED" : "RUNNING",
      span: () => spanOfIterations(known, of.end, step.ended_at === null),
      pieces: () => wholeOf(spanOfIterations(known, of.end, step.ended_at === null), failed > 0 ? "bad" : "good"),
      canUnfold: true,
    });
    return isOpen ? [parent, ...runRows({ ...of, depth: depth + 1 }, run, own)] : [parent];
  });
}

type Outcome = "good" | "bad" | "busy" | "waiting" | "unread";

function outcomeOf(iteration: IterationTrace | undefined, unread: Outcome | undefined, isOver: boolean): Outcome {
  if (iteration?.endedAt !== undefined) return iteration.isFailed ? "bad" : "good";
  if (unread !== undefined) return unread;
  if (isOver || iteration === undefined) return "waiting";
  return (iteration.command?.claims.length ?? 0) > 0 ? "busy" : "waiting";
}

function runRows(of: IterationsOf, run: StepRunTrace | undefined, key: string): TraceRow[] {
  const { step, traced, input } = of;
  const known = run?.iterations ?? new Map<number, IterationTrace>();
  let highest = -1;
  for (const index of known.keys()) highest = Math.max(highest, index);
  const total = Math.max(step.loop?.total ?? 0, highest + 1);
  const isOver = step.ended_at !== null || traced.execution.ended_at !== null;
  const unread = traced.isRead ? undefined : unreadOutcome(step, known);
  const outcome = (index: number) => outcomeOf(known.get(index), unread, isOver);
  const rows: TraceRow[] = [];
  for (let from = 0; from < total; ) {
    const is = outcome(from);
    let to = from + 1;
    const canJoin = total > SINGLE_MAX && is !== "bad" && is !== "busy";
    while (canJoin && to < total && to - from < RANGE_MAX && outcome(to) === is) to += 1;
    if (!(input.isFailedOnly && is !== "bad")) {
      if (to - from >= RANGE_MIN) rows.push(...rangeRows(of, known, key, from, to, is));
      else
        for (let index = from; index < to; index += 1)
          rows.push(...oneRow(of, known.get(index), key, index, is, of.depth));
    }
    from = to;
  }
  return rows;
}

/** How iterations came out whose end was not read: where all that failed are known, the others of a loop that is done went well. */
function unreadOutcome({ loop }: Step, known: ReadonlyMap<number, IterationTrace>): Outcome {
  if (loop === undefined || loop.done !== loop.total) return "unread";
  let failed = 0;
  for (const { isFailed } of known.values()) failed += isFailed ? 1 : 0;
  return failed === loop.failed ? "good" : "unread";
}

const STATES: Readonly<Record<Outcome, string>> = {
  good: "COMPLETED",
  bad: "FAILED",
  busy: "RUNNING",
  waiting: "PENDING",
  unread: "",
};
const WORDS: Readonly<Record<Outcome, string>> = {
  good: "completed",
  bad: "failed",
  busy: "running",
  waiting: "not begun",
  unread: "not read yet",
};

function rangeRows(
  of: IterationsOf,
  known: ReadonlyMap<number, IterationTrace>,
  key: string,
  from: number,
  to: number,
  is: Outcome,
): TraceRow[] {
  const { step, traced, input, depth, end } = of;
  const own = `${key}/g${from}-${to}`;
  const isOpen = input.open.has(own);
  const among = Array.from({ length: to - from }, (_, at) => known.get(from + at)).filter((each) => each !== undefined);
  const span = spanOfIterations(among, end);
  const isOver = step.ended_at !== null || traced.execution.ended_at !== null;
  const parent = row({
    ...{ key: own, depth, kind: "range", executionId: traced.execution.execution_id, step: step.name, isOpen },
    span: () => span,
    name: `items ${countText(from)}–${countText(to - 1)}`,
    note: `${countText(to - from)} ${is === "waiting" && isOver ? "not reached" : WORDS[is]}`,
    state: is === "waiting" && isOver ? "UNREACHED" : STATES[is],
    pieces: () => wholeOf(span, is === "good" ? "good" : "quiet"),
    canUnfold: is === "good",
  });
  if (!isOpen) return [parent];
  return [parent, ...among.flatMap((each) => oneRow(of, each, key, each.index, is, depth + 1))];
}

function oneRow(
  { step, traced, input, end }: IterationsOf,
  iteration: IterationTrace | undefined,
  key: string,
  index: number,
  is: Outcome,
  depth: number,
): TraceRow[] {
  const own = `${key}/i${index}`;
  const isOpen = input.open.has(own);
  const command = iteration?.command;
  const tasks = command?.tasks.filter((task) => task.iteration === index) ?? [];
  const calls = command?.calls.filter((call) => call.iteration === index || command.calls.length === 1) ?? [];
  const attempts = Math.max(0, ...tasks.map(({ run }) => run));
  const pieces = () =>
    iteration === undefined || command === undefined ? [] : iterationPieces(command, iteration, end);
  const isOver = step.ended_at !== null || traced.execution.ended_at !== null;
  const executionId = traced.execution.execution_id;
  const made = row({
    ...{ key: own, depth, kind: "iteration", executionId, step: step.name, isOpen, pieces, iteration: index },
    commandId: command?.id,
    name: `item ${countText(index)}`,
    note: attempts > 1 ? `attempt ${attempts}` : is === "bad" ? (tasks.at(-1)?.code ?? "") : "",
    state: is === "waiting" && isOver ? "UNREACHED" : STATES[is],
    span: () => spanOfPieces(pieces()),
    canUnfold: tasks.length > 1 || calls.length > 0,
    callId: calls.at(-1)?.id,
  });
  if (!isOpen || command === undefined || tasks.length <= 1) return [made];
  return [
    made,
    ...taskRows(tasks, { executionId, step, depth: depth + 1, key: own, commandId: command.id, iteration: index }),
  ];
}

function spanOfIterations(iterations: readonly IterationTrace[], end: number, isOpen = false): Span | undefined {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { command, endedAt } of iterations) {
    const began = command?.issuedAt ?? command?.claims[0]?.at ?? endedAt;
    if (began === undefined) continue;
    from = Math.min(from, began);
    to = Math.max(to, endedAt ?? (command?.endedAt === undefined && isOpen ? end : began));
  }
  return from > to ? undefined : { from, to };
}

function wholeOf(span: Span | undefined, tone: Piece["tone"]): Piece[] {
  return span === undefined ? [] : [{ kind: "whole", tone, ...span }];
}
