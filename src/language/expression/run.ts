import { FlowError } from "../../schema/words/errors.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { Scope } from "../views/scope.ts";
import type { Budget } from "./parsing/budget.ts";
import { excerpt } from "./parsing/fault.ts";

/** Arguments of `token(…)`, without views. */
export interface TokenCall {
  args: Json[];
  named: JsonObject;
}

/** One evaluation: what the compiled closures are given. Made for one rendering and thrown away after it. */
export interface Run {
  /** Names of the template; loops and `set` put their own in front while they last. */
  scope: Scope;
  readonly budget: Budget;
  /** Time of `now()` in milliseconds since 1970; absent: `now()` is an error. */
  readonly now: (() => number) | undefined;
  /** Answers `token(…)`; absent: `token()` is an error. What it throws reaches the caller unchanged. */
  readonly token: ((call: TokenCall) => unknown) | undefined;
  /** What becomes of a whole template's value before it is JSON. */
  readonly whole: (value: unknown) => unknown;
  /** Text of the expression that is being evaluated, for error messages. */
  source: string;
}

/** A `TEMPLATE_ERROR` about the expression that is being evaluated. `why` never quotes a value: it may be a secret. */
export function evaluationError(run: Run, why: string): FlowError {
  return new FlowError("TEMPLATE_ERROR", `Cannot evaluate ${excerpt(run.source)}: ${why}`);
}
