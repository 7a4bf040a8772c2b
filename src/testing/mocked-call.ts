import { compileCondition, compileTemplate } from "../language/template/template.ts";
import { objectScope } from "../language/views/scope.ts";
import type { Clock } from "../ports/clock.ts";
import type { MockAnswer } from "../schema/documents/test-document.ts";
import { messageOf } from "../schema/words/errors.ts";
import type { Json, JsonObject } from "../schema/words/json.ts";
import type { ToolResult } from "../schema/words/outcome.ts";
import type { ToolCall } from "../tools/contract/tool.ts";
import { abortedResult } from "../worker/deadline.ts";
import { answerResult } from "./answer.ts";
import { missing } from "./compare.ts";
import type { Failure } from "./failure.ts";

/** One call of a task that has a mock. */
export interface MockedCall {
  kind: string;
  /** Its config is that of the document. */
  call: ToolCall;
  /** Names of the iteration; empty outside loops. */
  iter: JsonObject;
  /** Which call of the task this is, from 1. */
  number: number;
  /** Name of the mock. */
  name: string;
  answers: readonly MockAnswer[];
}

/** What a mock gives: a result and what was not as it expects, or why it cannot give one. */
export type Answer = { result: ToolResult; failures: Failure[] } | { impossible: Failure };

/** Answers a call. `inLine` gives the 0-based number of the answer that is next, and is asked only when one is taken. */
export async function answerCall(mocked: MockedCall, inLine: () => number, clock: Clock): Promise<Answer> {
  const { kind, call, name } = mocked;
  const scope = objectScope(namesOf(mocked));
  try {
    const chosen = choose(mocked.answers, inLine, (when) => compileCondition(when).test(scope));
    if (chosen === undefined) return { impossible: noAnswer(mocked) };
    const failures = unexpected(chosen, mocked);
    const { when: _when, expect_input: _input, expect_config: _config, ...written } = chosen;
    // Templates are allowed only where the schema accepts any value, or text: the rendered value is still a valid answer.
    const answer = compileTemplate(written as unknown as Json).render(scope, { now: () => clock.now() }) as MockAnswer;
    // A call that takes longer than its time-out is aborted by the worker, as a real one is.
    if (answer.takes !== undefined) await clock.sleep(answer.takes * 1000, call.signal);
    return { result: answerResult(answer, kind, call.config, `Task '${call.task}' (${kind})`), failures };
  } catch (error) {
    if (call.signal.aborted) return { result: abortedResult(call.signal), failures: [] };
    return { impossible: { what: `mocks.${name}`, message: `this answer cannot be given: ${messageOf(error)}` } };
  }
}

/** The first answer whose `when` holds, else the one in line among those without `when`; its last repeats. */
function choose(
  list: readonly MockAnswer[],
  inLine: () => number,
  holds: (when: Json) => boolean,
): MockAnswer | undefined {
  const conditional = list.find((answer) => answer.when !== undefined && holds(answer.when));
  if (conditional !== undefined) return conditional;
  const waiting = list.filter((answer) => answer.when === undefined);
  return waiting.length === 0 ? undefined : waiting[Math.min(inLine(), waiting.length - 1)];
}

/** What the templates of an answer may read. */
function namesOf({ call, iter, number }: MockedCall): Record<string, unknown> {
  const own = { input: call.input, config: call.config, iter, call: number, attempt: call.attempt };
  return { ...iter, ...call.input, ...own, loop_index: iter["index"] };
}

function unexpected(answer: MockAnswer, { call, name, number }: MockedCall): Failure[] {
  const what = `mocks.${name}, call ${number}`;
  const compare = (part: string, expected: JsonObject | undefined, actual: JsonObject) =>
    expected === undefined
      ? []
      : missing(expected, actual).map(({ path, ...values }) => ({
          what,
          message: `${part} ${path}`.trim(),
          ...values,
        }));
  return [
    ...compare("input", answer.expect_input, call.input),
    ...compare("config", answer.expect_config, call.config),
  ];
}

function noAnswer({ call, name }: MockedCall): Failure {
  const input = JSON.stringify(call.input);
  return {
    what: `mocks.${name}`,
    message: `no answer's \`when\` holds for this call; its input is ${input.length > 300 ? `${input.slice(0, 300)}…` : input}`,
    hint: "add an answer without `when` for every other call",
  };
}
