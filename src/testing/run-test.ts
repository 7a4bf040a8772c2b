import { resultOf } from "../engine/state/results.ts";
import { type ExecutionState, emptyState } from "../engine/state/state.ts";
import { loadedReferences } from "../language/template/loaded-references.ts";
import { toPlainJson } from "../language/template/template.ts";
import { ResultView } from "../language/views/result-view.ts";
import { givenAnswers, type LocalAnswer } from "../local/approvals.ts";
import type { LocalPlaybook } from "../local/catalog.ts";
import { CAPACITY_DEFAULT, type LocalDeps, runExecution } from "../local/execution.ts";
import { createFamily } from "../local/family.ts";
import { createLocalKeychain } from "../local/keychain.ts";
import { createLocalResults, type LocalResults } from "../local/results.ts";
import type { LocalSignal } from "../local/waits.ts";
import type { CredentialSource } from "../ports/credentials.ts";
import type { WritableResultStore } from "../ports/result-store.ts";
import type { SecretSource } from "../ports/secret-source.ts";
import type { TestCase } from "../schema/documents/test-document.ts";
import { durationMs } from "../schema/rules/durations.ts";
import { fromRecord } from "../schema/rules/event-record.ts";
import { defined } from "../schema/words/defined.ts";
import { FlowError, messageOf } from "../schema/words/errors.ts";
import type { EventOf } from "../schema/words/event.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../schema/words/json.ts";
import { type ArtifactPlace, placeOfArtifact, type StoredResult } from "../schema/words/result.ts";
import type { Tool } from "../tools/contract/tool.ts";
import { arcName } from "./coverage.ts";
import { checkRun, elapsedSeconds, startedSteps } from "./expectations.ts";
import type { Failure } from "./failure.ts";
import { instrument } from "./instrument.ts";
import { createMockTools } from "./mock-tools.ts";
import type { FindChild } from "./names.ts";
import { recordedAnswers } from "./recorded-answers.ts";
import type { RecordedRun } from "./recorded-run.ts";
import { createSteppedClock, type SteppedClock } from "./stepped-clock.ts";

/** Real time after which a test is stopped: mocks answer at once, so a long test never ends. */
export const TEST_MS_MAX = 60_000;

/** When the run of a test starts, unless it says. */
const START = "2026-01-01T00:00:00Z";

/** What a test needs of its surroundings. */
export interface TestContext {
  playbook: LocalPlaybook;
  findChild: FindChild;
  /** The run that the test's `using` names. */
  recorded?: RecordedRun | undefined;
  /** Calls after which a test is given up; default 100,000. */
  callsMax?: number;
  /** The real tools, for unmocked tasks, reading results of this test from its store. */
  realTools(results: WritableResultStore): { get(kind: string): Promise<Tool> };
  signal: AbortSignal;
}

/** How a test went. */
export interface TestOutcome {
  name: string;
  /** Empty: it passed. */
  failures: Failure[];
  /** Real time it took. */
  durationMs: number;
  /** Virtual time of the run. */
  elapsedSeconds: number;
  /** Steps that were started, in order. */
  steps: string[];
  /** Arcs that were taken: {@link arcName}. */
  arcs: string[];
}

/** Runs one test: the real engine and worker, tools that answer what the test says, time that jumps. Never throws. */
export async function runTest(test: TestCase, context: TestContext): Promise<TestOutcome> {
  const startedAt = performance.now();
  const clock = createSteppedClock(Date.parse(test.now ?? context.recorded?.events[0]?.created_at ?? START));
  const files: ArtifactPlace[] = [];
  const results = createLocalResults(
    () => clock.now(),
    ({ ref, file }) => {
      const place = file === undefined ? undefined : placeOfArtifact(ref);
      if (place !== undefined) files.push(place);
    },
  );
  const real = context.realTools(results);
  const failures: Failure[] = [];
  let state = emptyState();
  try {
    state = await execute(test, context, real, { ...results, files }, failures, clock);
  } catch (error) {
    failures.push({ what: "run", message: `the run could not be carried out: ${messageOf(error)}` });
  } finally {
    await results.close();
  }
  const durationMs = Math.round(performance.now() - startedAt);
  const arcs = Object.entries(state.arcs).flatMap(([from, to]) => Object.keys(to).map((name) => arcName(from, name)));
  const ran = { steps: startedSteps(state), arcs };
  return { name: test.name, failures, durationMs, elapsedSeconds: elapsedSeconds(state), ...ran };
}

async function execute(
  test: TestCase,
  context: TestContext,
  real: { get(kind: string): Promise<Tool> },
  results: LocalResults & { files: readonly ArtifactPlace[] },
  failures: Failure[],
  clock: SteppedClock,
): Promise<ExecutionState> {
  const limit = stopAfter(TEST_MS_MAX, context.signal);
  const giveUp = (failure: Failure) => {
    if (limit.gaveUp.length === 0) limit.gaveUp.push(failure);
    limit.stop();
  };
  const prefixes = new Map<string, string>();
  const prefixOf = (executionId: string) => prefixes.get(executionId) ?? "";
  const tools = createMockTools({
    mocks: test.mocks ?? {},
    runReal: test.run_real ?? [],
    real,
    clock,
    prefixOf,
    giveUp,
    ...defined({ callsMax: context.callsMax }),
    ...(context.recorded !== undefined && { recorded: recordedAnswers(context.recorded) }),
  });
  const deps = depsOf(test, results, clock, tools, { run: (request, signal) => family.run(request, signal) });
  const mocked = (playbook: LocalPlaybook, prefix: string): LocalPlaybook => ({
    ...playbook,
    program: instrument(playbook.program, (step, task) => tools.isMocked(`${prefix}${step}.${task}`, prefix + step)),
  });
  const family = createFamily({
    newId: deps.newId,
    find(request) {
      tools.count(prefixOf(request.parent.execution_id) + request.parent.step);
      return context.findChild(request.path ?? request.catalogId ?? "", request.parentFile);
    },
    execute(playbook, start, signal) {
      const { parent } = start;
      const prefix = parent === undefined ? "" : `${prefixOf(parent.execution_id)}${parent.step}/`;
      prefixes.set(start.executionId, prefix);
      return runExecution(deps, mocked(playbook, prefix), start, signal);
    },
  });
  const catalogId = context.playbook.program.playbook.path;
  const target = test.target === undefined ? {} : { target: test.target };
  try {
    const request = { executionId: deps.newId(), catalogId, input: inputOf(test, context.recorded), ...target };
    const state = await clock.runUntil(family.runRoot(context.playbook, request, limit.signal));
    await clock.runUntil(family.idle());
    failures.push(...limit.gaveUp, ...tools.failures);
    if (limit.gaveUp.length === 0) failures.push(...(await check(test, state, results, tools.calls)));
    return state;
  } finally {
    limit.end();
  }
}

/** The request's inputs: those of the recorded run, and over them the test's own. */
function inputOf({ workload = {} }: TestCase, recorded: RecordedRun | undefined): JsonObject {
  const [first] = recorded?.events ?? [];
  if (first === undefined) return workload;
  return { ...(fromRecord(first) as EventOf<"playbook.initialized">).input, ...workload };
}

/** What engine and worker are given in a test: no time, no chance, no secret. */
function depsOf(
  test: TestCase,
  results: LocalResults,
  clock: SteppedClock,
  tools: LocalDeps["tools"],
  children: LocalDeps["children"],
): LocalDeps {
  let lastId = 0;
  return {
    worker: "test",
    tools,
    credentials: credentialsOf(test),
    keychain: createLocalKeychain(clock),
    secretSource: testTokens,
    usesStandIns: true,
    sealers: undefined,
    children,
    results,
    scopes: results,
    clock,
    // The longest delay that jitter may choose, so that durations are the same in every run.
    random: () => 0,
    env: test.env ?? {},
    newId: () => String(++lastId),
    capacity: CAPACITY_DEFAULT,
    signals: signalsOf(test),
    answer: givenAnswers(answersOf(test)),
    observe: () => undefined,
    log: () => undefined,
  };
}

/** In the order of their times; those of one time in the order of the document. Throws `FlowError` INVALID_INPUT. */
function signalsOf({ signals = {} }: TestCase): LocalSignal[] {
  return Object.entries(signals).flatMap(([name, given]) =>
    [given].flat().map(({ data = null, key, after = 0 }) => {
      return { signal: { name, data, ...defined({ key }) }, afterMs: afterMsOf(after, `signals.${name}`) };
    }),
  );
}

/** Throws `FlowError` INVALID_INPUT. */
function answersOf({ approvals = {} }: TestCase): Record<string, LocalAnswer[]> {
  const entries = Object.entries(approvals).map(([step, given]): [string, LocalAnswer[]] => [
    step,
    [given].flat().map(({ decision = "approve", after = 0, ...said }) => ({
      ...{ decision, afterMs: afterMsOf(after, `approvals.${step}`) },
      ...said,
    })),
  ]);
  return Object.fromEntries(entries);
}

function afterMsOf(after: string | number, where: string): number {
  const ms = durationMs(after);
  if (ms !== undefined) return ms;
  throw new FlowError("INVALID_INPUT", `${where}: \`after\` must be 250ms, 30s, 1h30m, 2d or seconds, not ${after}`);
}

async function check(
  test: TestCase,
  state: ExecutionState,
  results: WritableResultStore & { files: readonly ArtifactPlace[] },
  calls: ReadonlyMap<string, number>,
): Promise<Failure[]> {
  const references = loadedReferences(results);
  const plain = async (stored: StoredResult | null): Promise<Json | undefined> =>
    stored === null ? undefined : await references.evaluate(() => toPlainJson(new ResultView(stored, references)));
  const expect = test.expect ?? {};
  const ofSteps: JsonObject = {};
  for (const step of Object.keys(expect.results ?? {})) {
    const value = await plain(resultOf(state, step));
    if (value !== undefined) setOwn(ofSteps, step, value);
  }
  const wantsResult = expect.result !== undefined || expect.equals !== undefined;
  const result = wantsResult ? await plain(resultOf(state)) : undefined;
  const own = results.files.filter(({ executionId }) => executionId === state.executionId);
  return checkRun(expect, { state, result, results: ofSteps, calls, files: namesByStep(own) });
}

/** Without those that a repeated run of a task has stored again. */
function namesByStep(files: readonly ArtifactPlace[]): Record<string, string[]> {
  const steps = [...new Set(files.map(({ step }) => step))];
  const namesOf = (step: string) => new Set(files.filter((file) => file.step === step).map(({ name }) => name));
  return Object.fromEntries(steps.map((step) => [step, [...namesOf(step)].sort()]));
}

/** Every credential exists, so that no test needs real ones; those that the test names have its fields. */
function credentialsOf(test: TestCase): CredentialSource {
  return {
    find: (name) => {
      const given = own(test.credentials ?? {}, name);
      const fields = isJsonObject(given) ? given : {};
      const { type, data } = fields;
      if (typeof type === "string" && isJsonObject(data)) return Promise.resolve({ name, type, data });
      return Promise.resolve({ name, type: "custom", data: fields });
    },
  };
}

/** Tests never request a secret: a credential's token is the one in the test, else one derived from its name. */
const testTokens: SecretSource = {
  obtain: (_kind, _definition, credential) => Promise.resolve({ fields: credential?.data ?? {} }),
  renew: () => Promise.reject(new FlowError("INVALID_INPUT", "a test renews nothing")),
  token({ name, data }) {
    const given = own(data, "access_token") ?? own(data, "token");
    const token = typeof given === "string" ? given : `token-of-${name}`;
    return Promise.resolve({ token, expiresAt: Number.POSITIVE_INFINITY });
  },
  forget: () => undefined,
  close: () => Promise.resolve(),
};

/** A signal that aborts with the caller's, at `stop`, or when the real time is over; and why the test gave up. */
function stopAfter(ms: number, outer: AbortSignal) {
  const controller = new AbortController();
  const gaveUp: Failure[] = [];
  const stop = () => controller.abort(new FlowError("CANCELLED", "The test was stopped"));
  const expire = () => {
    const message = `the run did not end within ${ms / 1000} s of real time and was stopped`;
    gaveUp.push({ what: "run", message, hint: "does a tool of `run_real` hang, or a loop never end?" });
    stop();
  };
  const timer = setTimeout(expire, ms);
  const cancel = () => {
    gaveUp.push({ what: "run", message: "the test was cancelled" });
    stop();
  };
  outer.addEventListener("abort", cancel, { once: true });
  if (outer.aborted) cancel();
  const end = () => {
    clearTimeout(timer);
    outer.removeEventListener("abort", cancel);
  };
  return { signal: controller.signal, gaveUp, stop, end };
}
