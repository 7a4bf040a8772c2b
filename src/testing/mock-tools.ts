import { setImmediate as nextTurn } from "node:timers/promises";
import { objectScope } from "../language/scope.ts";
import { compileCondition, compileTemplate } from "../language/template.ts";
import { FlowError, messageOf } from "../schema/errors.ts";
import type { Json, JsonObject } from "../schema/json.ts";
import { failed, type ToolResult } from "../schema/outcome.ts";
import { canonicalKind } from "../schema/task-kinds.ts";
import type { MockAnswer } from "../schema/test-document.ts";
import type { Tool, ToolCall } from "../tools/tool.ts";
import { abortedResult } from "../worker/deadline.ts";
import { answerResult, MOCKED_PLAYBOOK } from "./answer.ts";
import { missing } from "./compare.ts";
import type { Failure } from "./failure.ts";
import { takeNotes } from "./instrument.ts";
import type { VirtualClock } from "./virtual-clock.ts";

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
  clock: VirtualClock;
  /** Name of the calling step in front of the names of a sub-playbook: `enrich/`; empty for the playbook itself. */
  prefixOf(executionId: string): string;
  /** The test cannot go on: stop the run. */
  giveUp(failure: Failure): void;
}

/** The tools of one test, and what became of them. */
export interface MockTools {
  get(kind: string): Promise<Tool>;
  isMocked(name: string, step: string): boolean;
  /** Notes a call that no tool sees: a sub-playbook's. */
  count(name: string): void;
  /** Calls so far by step and by `step.task`. */
  calls: Map<string, number>;
  /** Calls that were not as the mock expects. */
  failures: Failure[];
}

/** Tools that answer what the test says. `noop` and what `runReal` names run for real, on real time. */
export function createMockTools(options: MockToolsOptions): MockTools {
  const { clock } = options;
  const calls = new Map<string, number>();
  const failures: Failure[] = [];
  const answered = new Map<string, number>();
  let total = 0;

  const mockOf = (task: string, step: string) => {
    const name = Object.hasOwn(options.mocks, task) ? task : step;
    return Object.hasOwn(options.mocks, name) ? { name, mock: options.mocks[name] } : undefined;
  };
  const count = (name: string) => void calls.set(name, (calls.get(name) ?? 0) + 1);

  const run = async (kind: string, call: ToolCall): Promise<ToolResult> => {
    const step = options.prefixOf(call.executionId) + call.step;
    const task = `${step}.${call.task}`;
    count(step);
    count(task);
    total += 1;
    if (total > CALLS_MAX) return stop(endless(task, total));
    if (total % CALLS_PER_TURN === 0) await clock.hold(() => nextTurn());
    const { config, iter } = takeNotes(call.config);
    // A claim is no task of the step: what its tasks answer would be no rows, or rows without end.
    const found = mockOf(task, isClaim(call) ? task : step);
    if (found?.mock === undefined) {
      if (!isReal(kind, step, task)) return stop(unmocked(kind, step, call));
      const tool = await options.real.get(kind);
      return await clock.hold(() => tool.run({ ...call, config }), call.signal);
    }
    const list = Array.isArray(found.mock) ? found.mock : [found.mock];
    return await answer({ kind, call: { ...call, config }, iter, name: found.name, list });
  };

  const isReal = (kind: string, step: string, task: string) =>
    kind === "noop" || options.runReal.some((word) => word === task || word === step || canonicalKind(word) === kind);

  const stop = (failure: Failure): ToolResult => {
    options.giveUp(failure);
    return failed("configuration", "TEST", failure.message);
  };

  const answer = async (mocked: MockedCall): Promise<ToolResult> => {
    const { name, call, list } = mocked;
    const number = (calls.get(`${options.prefixOf(call.executionId)}${call.step}.${call.task}`) ?? 1) as number;
    const scope = objectScope(namesOf(mocked, number));
    try {
      const chosen = choose(list, () => next(name), (when) => compileCondition(when).test(scope));
      if (chosen === undefined) return stop(noAnswer(name, mocked));
      failures.push(...unexpected(chosen, mocked, number));
      const { when: _, expect_input: __, expect_config: ___, ...said } = chosen;
      const rendered = compileTemplate(said as unknown as Json).render(scope, { now: () => clock.now() });
      return await take(rendered as unknown as MockAnswer, mocked);
    } catch (error) {
      if (call.signal.aborted) return abortedResult(call.signal);
      const why = error instanceof FlowError ? error.message : messageOf(error);
      return stop({ what: `mocks.${name}`, message: `this answer cannot be given: ${why}` });
    }
  };

  /** 0-based number of the answer that is next in line. */
  const next = (name: string) => {
    const index = answered.get(name) ?? 0;
    answered.set(name, index + 1);
    return index;
  };

  const take = async (said: MockAnswer, { kind, call }: MockedCall): Promise<ToolResult> => {
    // A call that takes longer than its time-out is aborted by the worker, as a real one is.
    if (said.takes !== undefined) await clock.sleep(said.takes * 1000, call.signal);
    return answerResult(said, kind, call.config, `Task '${call.task}' (${kind})`);
  };

  /** Calls last no time unless a mock says so: only then it matters how long a kind may take by default. */
  const lasts = Object.values(options.mocks).some((mock) => [mock].flat().some(({ takes }) => takes !== undefined));
  const get = async (kind: string): Promise<Tool> => {
    const tool = { run: (call: ToolCall) => run(kind, call) };
    if (!lasts || kind === MOCKED_PLAYBOOK) return tool;
    const { defaultTimeoutMs } = await clock.hold(() => options.real.get(kind));
    return defaultTimeoutMs === undefined ? tool : { ...tool, defaultTimeoutMs };
  };

  return {
    get,
    isMocked: (name, step) => mockOf(name, step) !== undefined,
    count,
    calls,
    failures,
  };
}

interface MockedCall {
  kind: string;
  /** Its config is that of the document. */
  call: ToolCall;
  /** Names of the iteration. */
  iter: JsonObject;
  /** Name of the mock. */
  name: string;
  list: readonly MockAnswer[];
}

/** The first answer whose `when` holds, else the one in line among those without `when`; its last repeats. */
function choose(
  list: readonly MockAnswer[],
  next: () => number,
  holds: (when: Json) => boolean,
): MockAnswer | undefined {
  const conditional = list.find((answer) => answer.when !== undefined && holds(answer.when));
  if (conditional !== undefined) return conditional;
  const inLine = list.filter((answer) => answer.when === undefined);
  return inLine.length === 0 ? undefined : inLine[Math.min(next(), inLine.length - 1)];
}

/** What the templates of an answer may read. */
function namesOf({ call, iter }: MockedCall, number: number): Record<string, unknown> {
  const own = { input: call.input, config: call.config, iter, call: number, attempt: call.attempt };
  return { ...iter, ...call.input, ...own, loop_index: iter["index"] };
}

function unexpected(answer: MockAnswer, { call, name }: MockedCall, number: number): Failure[] {
  const what = `mocks.${name}, call ${number}`;
  const compare = (part: string, expected: JsonObject | undefined, actual: JsonObject) =>
    expected === undefined
      ? []
      : missing(expected, actual).map(({ path, ...values }) => ({ what, message: `${part} ${path}`.trim(), ...values }));
  return [
    ...compare("input", answer.expect_input, call.input),
    ...compare("config", answer.expect_config, call.config),
  ];
}

/** The label under which the worker makes a cursor's claims. */
function isClaim(call: ToolCall): boolean {
  return call.task === "claim" && call.taskRunId.endsWith("-claim");
}

/** An answer to begin with, by kind: what the message of a missing mock suggests. */
const SUGGESTIONS: Readonly<Record<string, string>> = {
  http: "{data: {}}",
  sqldb: "{rows: []}",
  shell: '{result: {status: ok, text: "", exit_code: 0}}',
  mcp: '{result: {status: ok, text: ""}}',
};

function unmocked(kind: string, step: string, call: ToolCall): Failure {
  const name = isClaim(call) || call.task !== call.step ? `${step}.${call.task}` : step;
  const suggestion = SUGGESTIONS[kind] ?? "{result: {}}";
  return {
    what: "mocks",
    message: `task '${call.task}' of step '${step}' (${kind}) has no mock, and tests call nothing for real`,
    hint: [
      "add its answer to the test:",
      "  mocks:",
      `    ${name}: ${suggestion}`,
      `or let it run: \`run_real: [${name}]\``,
    ].join("\n"),
  };
}

function noAnswer(name: string, { call }: MockedCall): Failure {
  const input = JSON.stringify(call.input);
  return {
    what: `mocks.${name}`,
    message: `no answer's \`when\` holds for this call; its input is ${input.length > 300 ? `${input.slice(0, 300)}…` : input}`,
    hint: "add an answer without `when` for every other call",
  };
}

function endless(task: string, total: number): Failure {
  return {
    what: "run",
    message: `the run made ${total.toLocaleString("en")} calls and was stopped, the last of them by '${task}'`,
    hint: "does a loop or a jump wait for an answer that the mock never gives?",
  };
}
