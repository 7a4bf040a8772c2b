import type { TraceEvent } from "./trace-event.ts";

/** One run of a task: a retry is a run of its own. Times are milliseconds since 1970. */
export interface TaskTrace {
  eventId: number;
  task: string;
  run: number;
  from: number;
  to: number;
  isFailed: boolean;
  code: string | undefined;
  message: string | undefined;
  iteration: number | undefined;
}

/** A command: from its issue over its claims to its end. */
export interface CommandTrace {
  id: string;
  /** Undefined where its issue was not read. */
  issuedAt: number | undefined;
  iterations: { from: number; to: number } | undefined;
  /** Each time that a worker took it; more than one after a wait, or where a worker was lost. */
  claims: { attempt: number; at: number; worker: string | undefined }[];
  /** When it began to wait for a time or a signal, in the order of the log. */
  parkedAt: number[];
  endedAt: number | undefined;
  outcome: "completed" | "failed" | "cancelled" | undefined;
  message: string | undefined;
  tasks: TaskTrace[];
  /** Executions that it called, with the iteration that did. */
  calls: { id: string; iteration: number | undefined }[];
}

/** The end of an iteration of a loop. */
export interface IterationTrace {
  index: number;
  command: CommandTrace | undefined;
  endedAt: number | undefined;
  isFailed: boolean;
  message: string | undefined;
}

/** One pass through a step. */
export interface StepRunTrace {
  id: string;
  commands: CommandTrace[];
  iterations: Map<number, IterationTrace>;
}

/** What the log has about the work of each step, by the step's name. */
export type StepTraces = Map<string, StepRunTrace[]>;

/** A fold of events in any order of pages, each event once. */
export interface TraceFold {
  steps: StepTraces;
  take(event: TraceEvent): void;
}

/** The run of a command whose issue was not read. */
const UNREAD = "";

/** An empty fold. */
export function createTraceFold(): TraceFold {
  const steps: StepTraces = new Map();
  const commands = new Map<string, { command: CommandTrace; run: StepRunTrace }>();
  // A step of a circle may have thousands of runs.
  const runs = new Map<string, StepRunTrace>();
  const placeOf = (event: TraceEvent, commandId: string) => {
    const known = commands.get(commandId);
    // Pages come in any order: the issue of a command may be read after its end.
    if (known !== undefined && (known.run.id !== UNREAD || event.stepRunId === undefined)) return known;
    const run = runOf(steps, runs, event.step, event.stepRunId ?? UNREAD);
    if (known !== undefined) return moved(steps, runs, event.step, known, run);
    const made = { command: freshCommand(commandId), run };
    run.commands.push(made.command);
    commands.set(commandId, made);
    return made;
  };
  return {
    steps,
    take(event) {
      if (event.commandId === undefined) return;
      const { command, run } = placeOf(event, event.commandId);
      takeEvent(command, run, event);
    },
  };
}

/** The fold of these events; of those up to one of them where `until` is given. */
export function stepTracesOf(events: Iterable<TraceEvent>, until = Number.POSITIVE_INFINITY): StepTraces {
  const fold = createTraceFold();
  for (const event of events) if (event.id <= until) fold.take(event);
  return fold.steps;
}

function runOf(steps: StepTraces, runs: Map<string, StepRunTrace>, step: string, id: string): StepRunTrace {
  const known = runs.get(`${step}/${id}`);
  if (known !== undefined) return known;
  const made: StepRunTrace = { id, commands: [], iterations: new Map() };
  runs.set(`${step}/${id}`, made);
  const own = steps.get(step);
  if (own === undefined) steps.set(step, [made]);
  else own.push(made);
  return made;
}

function moved(
  steps: StepTraces,
  runs: Map<string, StepRunTrace>,
  step: string,
  known: { command: CommandTrace; run: StepRunTrace },
  run: StepRunTrace,
): typeof known {
  if (known.run === run) return known;
  known.run.commands = known.run.commands.filter((command) => command !== known.command);
  run.commands.push(known.command);
  for (const [index, iteration] of known.run.iterations) {
    if (iteration.command !== known.command) continue;
    known.run.iterations.delete(index);
    run.iterations.set(index, iteration);
  }
  const { run: left } = known;
  if (left.commands.length === 0) {
    runs.delete(`${step}/${left.id}`);
    steps.set(
      step,
      (steps.get(step) ?? []).filter((each) => each !== left),
    );
  }
  known.run = run;
  return known;
}

function freshCommand(id: string): CommandTrace {
  return {
    id,
    issuedAt: undefined,
    iterations: undefined,
    claims: [],
    parkedAt: [],
    endedAt: undefined,
    outcome: undefined,
    message: undefined,
    tasks: [],
    calls: [],
  };
}

function takeEvent(command: CommandTrace, run: StepRunTrace, event: TraceEvent): void {
  switch (event.type) {
    case "command.issued":
      command.issuedAt = event.at;
      command.iterations = event.iterations;
      for (let index = event.iterations?.from ?? 0; index < (event.iterations?.to ?? 0); index += 1) {
        iterationOf(run, index).command = command;
      }
      return;
    case "command.claimed":
      command.claims.push({ attempt: event.attempt ?? command.claims.length + 1, at: event.at, worker: event.worker });
      return;
    case "command.parked":
      command.parkedAt.push(event.at);
      return;
    case "command.completed":
    case "command.failed":
    case "command.cancelled":
      command.endedAt = event.at;
      command.outcome = ENDS[event.type];
      command.message = event.message;
      return;
    case "task.done":
    case "call.done":
      takeTask(command, event);
      return;
    case "loop.iteration.completed":
    case "loop.iteration.failed": {
      const iteration = iterationOf(run, event.iteration ?? 0);
      Object.assign(iteration, { command, endedAt: event.at, message: event.message });
      iteration.isFailed = event.type === "loop.iteration.failed";
      return;
    }
    default:
  }
}

const ENDS = {
  "command.completed": "completed",
  "command.failed": "failed",
  "command.cancelled": "cancelled",
} as const;

function iterationOf(run: StepRunTrace, index: number): IterationTrace {
  const known = run.iterations.get(index);
  if (known !== undefined) return known;
  const made: IterationTrace = { index, command: undefined, endedAt: undefined, isFailed: false, message: undefined };
  run.iterations.set(index, made);
  return made;
}

function takeTask(command: CommandTrace, event: TraceEvent): void {
  const { childId, iteration } = event;
  if (childId !== undefined && !command.calls.some(({ id }) => id === childId)) {
    command.calls.push({ id: childId, iteration });
  }
  if (event.type !== "task.done") return;
  const earlier = command.tasks.filter((task) => task.task === event.task && task.iteration === iteration);
  command.tasks.push({
    eventId: event.id,
    task: event.task,
    run: event.run ?? earlier.length + 1,
    from: event.at - event.durationMs,
    to: event.at,
    isFailed: event.isFailed,
    code: event.code,
    message: event.message,
    iteration,
  });
}
