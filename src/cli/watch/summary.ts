import { resultOf } from "../../engine/state/results.ts";
import { type ExecutionState, type StepState, stepState } from "../../engine/state/state.ts";
import { boundedResult } from "../../language/views/bounded-result.ts";
import type { LocalPlaybook } from "../../local/catalog.ts";
import type { ResultStore } from "../../ports/result-store.ts";
import { defined } from "../../schema/words/defined.ts";
import { type Diagnostic, formatDiagnostic } from "../../schema/words/diagnostic.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { type CliIo, type CliValues, EXIT } from "../command-line/command.ts";
import { failureLines, type RunLocation } from "../progress/failure-report.ts";
import { firstLine } from "../progress/lines.ts";
import { resultText, wholeResult } from "../progress/result.ts";
import type { ExecutionRow, RunModel, Unattended } from "../progress/run-model.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { cleanText, formatDuration, jsonText, plural } from "../terminal/text.ts";

/** Warnings of a document that are printed before its run; `flow validate` prints all. */
const WARNINGS_MAX = 10;

/** Prints a document's warnings to standard error, one line each. */
export function writeWarnings(warnings: readonly Diagnostic[], io: CliIo): void {
  for (const warning of warnings.slice(0, WARNINGS_MAX)) {
    io.stderr.write(`warning: ${cleanText(formatDiagnostic(warning))}\n`);
  }
  const rest = warnings.length - WARNINGS_MAX;
  if (rest > 0) io.stderr.write(`and ${plural(rest, "more warning")}; 'flow validate' lists all\n`);
}

/** What printing an outcome needs. */
export interface RunSource {
  /** Undefined where this version of flow cannot read it. */
  playbook: LocalPlaybook | undefined;
  results: ResultStore;
  /** Default: this process. */
  place?: RunLocation;
}

/**
 * Prepares the outcome of a run that has ended, while its results can still be loaded. The returned function prints it and
 * returns the exit code: the result on standard output (with `--json` the whole outcome), the summary on standard error.
 */
export async function prepareOutcome(
  model: RunModel,
  source: RunSource,
  options: CliValues,
  io: CliIo,
): Promise<() => number> {
  const run = model.root();
  if (run === undefined) throw new FlowError("INTERNAL", "The run ended without an event");
  const { status } = run.state;
  const style = styleFor(io.stderr, io, options["no-color"] === true);
  const json = options["json"] === true ? `${jsonText(await outcomeObject(run, source.results))}\n` : undefined;
  return () => {
    for (const line of summaryLines(run, source, style)) io.stderr.write(`${line}\n`);
    const unattended = model.unattended();
    for (const line of unattendedLines(unattended)) io.stderr.write(`${line}\n`);
    if (json !== undefined) io.stdout.write(json);
    else if (status === "COMPLETED") writeResult(run, style, io);
    // The run had ended, but Ctrl-C cancelled its remaining sub-playbooks.
    if (status === "COMPLETED") return io.signal.aborted && unattended.cancelled > 0 ? EXIT.cancelled : EXIT.ok;
    return status === "CANCELLED" ? EXIT.cancelled : EXIT.failed;
  };
}

function summaryLines(run: ExecutionRow, { playbook, place }: RunSource, style: Style): string[] {
  const { path, status, startedAt, endedAt, error } = run.state;
  const name = cleanText(path);
  const duration = formatDuration((endedAt ?? startedAt) - startedAt);
  if (status === "COMPLETED") return [`${style.good("✓")} ${style.strong(name)} COMPLETED in ${duration}`];
  if (status === "CANCELLED") {
    const reason = error === null ? "" : `: ${cleanText(error.message)}`;
    return [`${style.notice("■")} ${style.strong(name)} CANCELLED after ${duration}${reason}`];
  }
  return [
    `${style.bad("✗")} ${style.strong(name)} FAILED after ${duration}`,
    ...failureLines(run, playbook, style, place),
  ];
}

/** Sub-playbooks that no step waited for: not part of the outcome, but people want to know of failures. */
function unattendedLines({ failed, cancelled, last }: Readonly<Unattended>): string[] {
  if (last === undefined) return [];
  const counts = [failed > 0 ? `${failed} failed` : "", cancelled > 0 ? `${cancelled} cancelled` : ""];
  const { path, executionId, status, error } = last.state;
  const cause = error === null ? "" : `: ${firstLine(error.message)}`;
  const which = `${cleanText(path)}, execution ${executionId}, ${status}${cause}`;
  return [
    `warning: of the sub-playbooks that no step waited for, ${counts.filter(Boolean).join(", ")}; the last: ${which}`,
  ];
}

function writeResult(run: ExecutionRow, style: Style, io: CliIo): void {
  const result = resultOf(run.state);
  if (result === null) return;
  const { lines, missing } = resultText(result);
  for (const line of lines) io.stdout.write(`${line}\n`);
  if (missing !== undefined) io.stderr.write(`${style.dim(missing)}\n`);
}

/** What `flow run --json` prints (language document, section 11). */
export interface OutcomeObject {
  execution_id: string;
  path: string;
  status: ExecutionState["status"];
  /** The whole result, also where it lies in the store; a sensitive one by reference. */
  result: Json;
  error: ErrorObject | null;
  started_at: string;
  ended_at: string | null;
  duration_ms: number | null;
  /** In the order of their first start; after them those that were skipped and never ran. */
  steps: StepObject[];
}

/** One step of an {@link OutcomeObject}. */
export interface StepObject {
  name: string;
  status: StepState["status"];
  /** The highest number of runs that one of its tasks needed, in the step's last run; 0 when it never ran. */
  attempts: number;
  started_at: string | null;
  ended_at: string | null;
  duration_ms: number | null;
  iterations?: { total: number | null; done: number; failed: number };
  error?: ErrorObject;
  /** Inline up to the inline limit, else by reference. */
  result?: Json;
}

/** Why a run or a step failed. */
export type ErrorObject = Pick<TaskError, "kind" | "code" | "message" | "retryable"> & {
  step: string | null;
  task: string | null;
  attempt: number | null;
  details?: Json;
};

/** The outcome of a run that has ended. Throws `FlowError` REFERENCE_NOT_AVAILABLE when its result cannot be loaded. */
export async function outcomeObject(run: ExecutionRow, store: ResultStore): Promise<OutcomeObject> {
  const { state } = run;
  const result = resultOf(state);
  return {
    execution_id: state.executionId,
    path: state.path,
    status: state.status,
    result: result === null ? null : await wholeResult(result, store),
    error: state.error === null ? null : errorObject(state.error),
    ...times(state.startedAt, state.endedAt),
    started_at: isoTime(state.startedAt),
    steps: stepNames(state).map((name) => stepObject(run, name)),
  };
}

function stepNames(state: ExecutionState): string[] {
  const order = (name: string) => stepState(state, name).order || Number.POSITIVE_INFINITY;
  return Object.keys(state.steps)
    .filter((name) => stepState(state, name).status !== "PENDING")
    .sort((left, right) => (order(left) < order(right) ? -1 : Number(order(left) > order(right))));
}

function stepObject(run: ExecutionRow, name: string): StepObject {
  const step = stepState(run.state, name);
  const ran = step.order > 0;
  return {
    name,
    status: step.status,
    attempts: ran ? Math.max(1, step.attempts, run.byName.get(name)?.attempts ?? 0) : 0,
    ...times(step.startedAt, step.endedAt),
    ...(step.loop !== null && { iterations: { ...step.loop } }),
    ...(step.error !== null && { error: errorObject(step.error) }),
    ...(step.result !== null && { result: boundedResult(step.result) }),
  };
}

function times(startedAt: number | null, endedAt: number | null) {
  return {
    started_at: startedAt === null ? null : isoTime(startedAt),
    ended_at: endedAt === null ? null : isoTime(endedAt),
    duration_ms: startedAt === null || endedAt === null ? null : endedAt - startedAt,
  };
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}

function errorObject(error: TaskError): ErrorObject {
  const { kind, code, message, retryable, step, task, attempt, details, status_code } = error;
  const shownDetails = details ?? (status_code === undefined ? undefined : ({ status_code } satisfies JsonObject));
  return {
    kind,
    code,
    message,
    retryable,
    step: step ?? null,
    task: task ?? null,
    attempt: attempt ?? null,
    ...defined({ details: shownDetails }),
  };
}
