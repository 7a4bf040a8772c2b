import { setImmediate as nextTurn } from "node:timers/promises";
import type { MockAnswer } from "../schema/documents/test-document.ts";
import type { JsonObject } from "../schema/words/json.ts";
import { failed, type ToolResult } from "../schema/words/outcome.ts";
import { canonicalKind } from "../schema/words/task-kinds.ts";
import type { Tool, ToolCall } from "../tools/contract/tool.ts";
import { MOCKED_PLAYBOOK } from "./answer.ts";
import type { Failure } from "./failure.ts";
import { takeNotes } from "./instrument.ts";
import { answerCall } from "./mocked-call.ts";
import type { RecordedAnswers } from "./recorded-answers.ts";
import type { SteppedClock } from "./stepped-clock.ts";

/** Calls of one run after which it is given up: a loop that a mock never ends. */
export const CALLS_MAX = 100_000;
/** Calls between two turns of the event loop, so that a run of mocks alone can be cancelled and timed. */
const CALLS_PER_TURN = 256;

/** What the tools of one test are made of. */
export interface MockToolsOptions {
  /** By step, `step.task`, or either within a sub-playbook. */
  mocks: Readonly<Record<string, MockAnswer | MockAnswer[]>>;
  /** Kinds and names whose tool really runs. */
  runReal: readonly string[];
  real: { get(kind: string): Promise<Tool> };
  /** What tools answered in a recorded run: for tasks without a mock. */
  recorded?: RecordedAnswers;
  clock: SteppedClock;
  /** Name of the calling step in front of the names of a sub-playbook: `enrich/`; empty for the playbook itself. */
  prefixOf(executionId: string): string;
  /** Default {@link CALLS_MAX}. */
  callsMax?: number;
  /** The test cannot go on: stop the run. */
  giveUp(failure: Failure): void;
}

/** The tools of one test, and what became of them. */
export interface MockTools {
  get(kind: string): Promise<Tool>;
  isMocked(task: string, step: string): boolean;
  /** Counts a call that no tool sees, a sub-playbook's, and gives its number. */
  count(name: string): number;
  /** Calls so far by step and by `step.task`. */
  calls: Map<string, number>;
  /** Calls that were not as the mock expects. */
  failures: Failure[];
}

/** Tools that answer what the test says. `noop` and what `runReal` names run for real, on real time. */
export function createMockTools(options: MockToolsOptions): MockTools {
  const { clock, mocks, callsMax = CALLS_MAX } = options;
  const calls = new Map<string, number>();
  const answered = new Map<string, number>();
  const failures: Failure[] = [];
  let total = 0;

  const count = (name: string) => {
    const number = (calls.get(name) ?? 0) + 1;
    calls.set(name, number);
    return number;
  };
  /** 0-based number of the answer that is next in the line of a mock. */
  const inLine = (name: string) => {
    const index = answered.get(name) ?? 0;
    answered.set(name, index + 1);
    return index;
  };
  const giveUp = (failure: Failure): ToolResult => {
    options.giveUp(failure);
    return failed("configuration", "TEST", failure.message);
  };

  const run = async (kind: string, given: ToolCall): Promise<ToolResult> => {
    const step = options.prefixOf(given.executionId) + given.step;
    const task = `${step}.${given.task}`;
    count(step);
    const number = count(task);
    total += 1;
    if (total > callsMax) return giveUp(endless(task, total));
    if (total % CALLS_PER_TURN === 0) await clock.hold(() => nextTurn());
    const { config, iter } = takeNotes(given.config);
    const call = { ...given, config };
    const name = mockName(mocks, task, answersForStep(kind, call) ? step : task);
    const mock = name === undefined ? undefined : mocks[name];
    if (name === undefined || mock === undefined) {
      if (!isReal(options.runReal, kind, step, task)) {
        const { recorded } = options;
        const known = recorded?.next(task, indexOf(iter), kind, config) ?? unmocked(kind, step, call, recorded);
        if (typeof known === "string") return giveUp({ what: "using", message: known });
        return "what" in known ? giveUp(known) : known;
      }
      const tool = await options.real.get(kind);
      return await clock.hold(() => tool.run(call), call.signal);
    }
    const answers = Array.isArray(mock) ? mock : [mock];
    const answer = await answerCall({ kind, call, iter, number, name, answers }, () => inLine(name), clock);
    if ("impossible" in answer) return giveUp(answer.impossible);
    failures.push(...answer.failures);
    return answer.result;
  };

  /** Calls last no time unless a mock says so: only then it matters how long a kind may take by default. */
  const lasts = Object.values(mocks).some((mock) => [mock].flat().some(({ takes }) => takes !== undefined));
  const get = async (kind: string): Promise<Tool> => {
    const tool = { run: (call: ToolCall) => run(kind, call) };
    if (!lasts || kind === MOCKED_PLAYBOOK) return tool;
    const { defaultTimeoutMs } = await clock.hold(() => options.real.get(kind));
    return defaultTimeoutMs === undefined ? tool : { ...tool, defaultTimeoutMs };
  };

  const isMocked = (task: string, step: string) =>
    mockName(mocks, task, step) !== undefined ||
    (options.recorded?.has(task) === true && !options.runReal.some((word) => word === task || word === step));
  return { get, isMocked, count, calls, failures };
}

/** The mock of a task: its own, else its step's. */
function mockName(mocks: MockToolsOptions["mocks"], task: string, step: string): string | undefined {
  return [task, step].find((name) => Object.hasOwn(mocks, name));
}

/**
 * Whether the mock of a step answers for this call. Not for a cursor's claim, which is no task and would get no rows, or
 * rows without end; and not for a `noop` in a list of tasks, which is there to assign and to decide.
 */
function answersForStep(kind: string, call: ToolCall): boolean {
  return !isClaim(call) && (kind !== "noop" || call.task === call.step);
}

function isReal(words: readonly string[], kind: string, step: string, task: string): boolean {
  return kind === "noop" || words.some((word) => word === task || word === step || canonicalKind(word) === kind);
}

/** The label under which the worker makes a cursor's claims. */
function isClaim(call: ToolCall): boolean {
  return call.task === "claim" && call.taskRunId.endsWith("-claim");
}

/** An answer to begin with, by kind: what the message of a missing mock suggests. */
const SUGGESTIONS: ReadonlyMap<string, string> = new Map([
  ["http", "{data: {}}"],
  ["sqldb", "{rows: []}"],
  ["duckdb", "{rows: []}"],
  ["warehouse", "{rows: []}"],
  ["transfer", "{result: {status: success, rows_read: 0, rows_written: 0}}"],
  ["shell", '{result: {status: ok, text: "", exit_code: 0}}'],
  ["mcp", '{result: {status: ok, text: ""}}'],
  ["nats", '{result: {status: success, value: ""}}'],
]);

/** The index of an iteration; undefined outside loops. */
function indexOf(iter: JsonObject): number | undefined {
  const { index } = iter;
  return typeof index === "number" ? index : undefined;
}

function unmocked(kind: string, step: string, call: ToolCall, recorded: RecordedAnswers | undefined): Failure {
  const name = isClaim(call) || call.task !== call.step ? `${step}.${call.task}` : step;
  const suggestion = SUGGESTIONS.get(kind) ?? "{result: {}}";
  return {
    what: "mocks",
    message: `task '${call.task}' of step '${step}' (${kind}) has no mock${
      recorded === undefined ? "" : ", the recorded run has no answer for this call"
    }, and tests call nothing for real`,
    hint: [
      "add its answer to the test:",
      "  mocks:",
      `    ${name}: ${suggestion}`,
      `or let it run: \`run_real: [${name}]\``,
    ].join("\n"),
  };
}

function endless(task: string, total: number): Failure {
  return {
    what: "run",
    message: `the run made ${total.toLocaleString("en")} calls and was stopped, the last of them by '${task}'`,
    hint: "does a loop or a jump wait for an answer that the mock never gives?",
  };
}
