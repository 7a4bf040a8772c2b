import { FlowError } from "../../schema/words/errors.ts";
import { type Json, type JsonObject, own } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { EngineEnv } from "../env.ts";
import { quoted } from "../errors.ts";
import type { Program } from "../program/program.ts";
import { render } from "./scope.ts";

/**
 * `executor.spec.timeout` in milliseconds; undefined if there is no limit. At the limit the runtime ends the execution with
 * `workflow.failed` and {@link outOfTime}. Throws `FlowError` if the limit is invalid, so that the execution cannot begin;
 * `ReferenceNeeded` as decisions do.
 */
export function timeLimit(program: Program, workload: JsonObject, env: EngineEnv): number | undefined {
  const template = program.timeoutMs;
  if (template === undefined) return undefined;
  const { open = asItIs } = env.sealing ?? {};
  const lookup = (name: string) => open(name === "workload" ? workload : own(workload, name));
  return milliseconds(render(template, { lookup, names: () => Object.keys(workload) }, env), (value) =>
    quoted(value, env),
  );
}

/** The error of an execution that was open for longer than its limit. */
export function outOfTime(path: string, limitMs: number): TaskError {
  const message = `The execution of '${path}' did not end within ${limitMs / 1000} s and was stopped`;
  return { kind: "timeout", code: "TIMEOUT", message, retryable: false };
}

function asItIs<T>(value: T): T {
  return value;
}

/** Milliseconds of a rendered time-out; undefined if there is no limit. */
export function milliseconds(value: Json, quote: (value: Json) => string = JSON.stringify): number | undefined {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number) && number > 0) return number;
  if (value === null || value === "" || number === 0) return undefined;
  throw new FlowError("INVALID_INPUT", `A time-out must be a positive number, got ${quote(value)}`);
}
