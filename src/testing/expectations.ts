import { type ExecutionState, knownStep } from "../engine/state/state.ts";
import type { Expectations } from "../schema/documents/test-document.ts";
import type { Json, JsonObject } from "../schema/words/json.ts";
import type { TaskError } from "../schema/words/outcome.ts";
import { type Difference, fieldPath, missing, unequal } from "./compare.ts";
import type { Failure } from "./failure.ts";

/** What a run came to, as expectations see it. */
export interface Run {
  state: ExecutionState;
  /** Result of the run; undefined when it has none. */
  result: Json | undefined;
  /** Results of the steps that have one. */
  results: JsonObject;
  calls: ReadonlyMap<string, number>;
  /** Names of the files that steps have stored, sorted, by step. */
  files: Readonly<Record<string, string[]>>;
}

/** Every expectation that the run does not meet. */
export function checkRun(expect: Expectations, run: Run): Failure[] {
  const { state } = run;
  const wanted = expect.status ?? (expect.error === undefined ? "COMPLETED" : "FAILED");
  const failures: Failure[] = [];
  if (state.status !== wanted) failures.push(wrongStatus(wanted, state));
  const add = (name: string, differences: Difference[]) => failures.push(...asFailures(`expect.${name}`, differences));
  if (expect.result !== undefined) add("result", missing(expect.result, run.result));
  if (expect.equals !== undefined) add("equals", unequal(expect.equals, run.result));
  if (expect.results !== undefined) add("results", missing(expect.results, run.results));
  if (expect.steps !== undefined) add("steps", unequal(expect.steps, startedSteps(state)));
  if (expect.variables !== undefined) add("variables", missing(expect.variables, state.vars));
  for (const [step, names] of Object.entries(expect.files ?? {}))
    add(`files.${step}`, unequal(names.toSorted(), run.files[step] ?? []));
  if (expect.error !== undefined) add("error", missing(expect.error, errorFields(state.error)));
  for (const step of expect.skipped ?? []) {
    const status = knownStep(state, step)?.status ?? "PENDING";
    if (status !== "SKIPPED") add("skipped", [{ path: step, expected: "SKIPPED", actual: status }]);
  }
  for (const [name, count] of Object.entries(expect.calls ?? {})) {
    const made = run.calls.get(name) ?? 0;
    if (made !== count) add("calls", [{ path: name, expected: count, actual: made }]);
  }
  return [...failures, ...wrongDuration(expect.elapsed_seconds, elapsedSeconds(state))];
}

/** Virtual duration of a run in seconds. */
export function elapsedSeconds(state: ExecutionState): number {
  return ((state.endedAt ?? state.startedAt) - state.startedAt) / 1000;
}

/** Names of the steps that ran, in the order of their first starts. */
export function startedSteps(state: ExecutionState): string[] {
  return Object.entries(state.steps)
    .filter(([, step]) => step.order > 0)
    .sort(([, left], [, right]) => left.order - right.order)
    .map(([name]) => name);
}

function wrongStatus(wanted: string, state: ExecutionState): Failure {
  const { error } = state;
  const failure = { what: "expect.status", message: "", expected: wanted, actual: state.status };
  if (error === null) return failure;
  const place = [error.step, error.task].filter((name) => name !== undefined).join(", task ");
  const hint = `${place === "" ? "" : `step ${place}: `}${error.kind} ${error.code}: ${error.message}`;
  return { ...failure, hint: error.code === "KEYCHAIN" ? `${hint}\n${KEYCHAIN_HINT}` : hint };
}

const KEYCHAIN_HINT = "give the entry its fields in the test: `credentials: {<name>: {<field>: …}}`";

function errorFields(error: TaskError | null): Json | undefined {
  return error === null ? undefined : { ...error, details: error.details ?? null };
}

function wrongDuration(wanted: Expectations["elapsed_seconds"], actual: number): Failure[] {
  if (wanted === undefined) return [];
  const { min, max } = typeof wanted === "number" ? { min: wanted, max: wanted } : wanted;
  if (actual >= (min ?? 0) && actual <= (max ?? Number.POSITIVE_INFINITY)) return [];
  return [{ what: "expect.elapsed_seconds", message: "", expected: wanted as Json, actual }];
}

function asFailures(what: string, differences: readonly Difference[]): Failure[] {
  return differences.map(({ path, expected, actual }) => {
    const place = path === "" || path.startsWith("[") ? `${what}${path}` : whole(what, path);
    return { what: place, message: "", expected, actual };
  });
}

/** `expect.calls` and `enrich/lookup` are joined as a field; paths of values are joined as they are. */
function whole(what: string, path: string): string {
  return /^[\w-]+([.[]|$)/.test(path) ? `${what}.${path}` : fieldPath(what, path);
}
