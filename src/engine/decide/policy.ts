import type { RenderOptions, Template } from "../../language/template/template.ts";
import { ReferenceNeeded } from "../../language/views/references.ts";
import type { Scope } from "../../language/views/scope.ts";
import { type ToolResult, WORKER_LOST } from "../../schema/words/outcome.ts";
import type { CompiledAssignment, ProgramRule } from "../program/program.ts";

/** What to do after a task: only the verdict, which the worker carries out. */
export type Verdict = { set: readonly CompiledAssignment[] } & (
  | { do: "continue" }
  | { do: "break" }
  | ({ do: "fail" } & Reason)
  | { do: "jump"; to: string }
  | { do: "retry"; delayMs: number }
);

/** A rule's settings for the failure that it makes; absent fields keep the tool's values. */
export interface Reason {
  message?: string;
  code?: string;
}

/** How often a task was run, and since when. */
export interface Tries {
  /** Runs so far, this one included. */
  runs: number;
  /** Milliseconds since the first run began. */
  elapsedMs: number;
}

/** Most runs of a task if its retry does not set a number. */
export const ATTEMPTS_DEFAULT = 3;
/** Longest delay between two runs, whatever the back-off. */
export const DELAY_MAX_MS = 300_000;
/** Delay if a back-off is named without one. */
const DELAY_DEFAULT_SECONDS = 1;

/**
 * Judges an outcome by the task's rules: top-down, the first match decides (language document, section 5.5). A rule that
 * cannot be evaluated does not match. Without a match a success continues and an error fails.
 *
 * @param random a number in [0, 1), for jitter.
 */
export function judge(
  rules: readonly ProgramRule[],
  result: ToolResult,
  tries: Tries,
  scope: Scope,
  options: RenderOptions,
  random: () => number,
): Verdict {
  for (const rule of rules) {
    if (rule.when !== undefined && !matches(rule, scope, options)) continue;
    return verdictOf(rule, result, tries, scope, options, random);
  }
  return result.status === "ok" ? { do: "continue", set: [] } : { do: "fail", set: [] };
}

function matches(rule: ProgramRule, scope: Scope, options: RenderOptions): boolean {
  try {
    return rule.when?.test(scope, options) ?? true;
  } catch (error) {
    if (error instanceof ReferenceNeeded) throw error;
    return false;
  }
}

function verdictOf(
  rule: ProgramRule,
  result: ToolResult,
  tries: Tries,
  scope: Scope,
  options: RenderOptions,
  random: () => number,
): Verdict {
  const { set } = rule;
  switch (rule.rule.do) {
    case "continue":
    case "break":
      return { do: rule.rule.do, set };
    case "fail":
      return { do: "fail", set, ...reasonOf(rule, scope, options) };
    case "jump":
      return { do: "jump", to: rule.rule.to ?? "previous", set };
    case "retry":
      return retry(rule, result, tries, (template) => numberOf(template, scope, options), options, random);
  }
}

function reasonOf({ message, code }: ProgramRule, scope: Scope, options: RenderOptions): Reason {
  const why = textOf(message, scope, options);
  const word = textOf(code, scope, options);
  return { ...(why !== undefined && { message: why }), ...(word !== undefined && { code: word }) };
}

/** The text to which a template renders; other values as their JSON. Undefined for null and for an empty text. */
function textOf(template: Template | undefined, scope: Scope, options: RenderOptions): string | undefined {
  const value = template?.render(scope, options) ?? null;
  const text = typeof value === "string" ? value.trim() : value === null ? "" : JSON.stringify(value);
  return text === "" ? undefined : text;
}

function retry(
  rule: ProgramRule,
  result: ToolResult,
  tries: Tries,
  read: (template: Template | undefined) => number | undefined,
  options: RenderOptions,
  random: () => number,
): Verdict {
  const { set } = rule;
  const exhausted: Verdict = { do: "fail", set };
  // A sub-playbook that ended so has cost as many workers as the limit allows: running it again would multiply the limit.
  if (result.error?.code === WORKER_LOST) return exhausted;
  if (tries.runs >= (read(rule.attempts) ?? ATTEMPTS_DEFAULT)) return exhausted;
  const share = jitterShare(rule, read);
  const planned = backoffMs(rule.rule.backoff, read(rule.delay), tries.runs);
  // Full jitter for share 1: anywhere between 0 and the planned delay, so that tasks that failed together retry apart.
  const spread = planned * (1 - share * random());
  const delayMs = Math.round(Math.min(DELAY_MAX_MS, Math.max(spread, retryAfterMs(result, options))));
  const maxElapsed = read(rule.maxElapsed);
  if (maxElapsed !== undefined && tries.elapsedMs + delayMs > maxElapsed * 1000) return exhausted;
  return { do: "retry", delayMs, set };
}

/** Milliseconds to wait before run `runs + 1`. */
export function backoffMs(backoff: ProgramRule["rule"]["backoff"], delay: number | undefined, runs: number): number {
  if (backoff === "none") return 0;
  const seconds = delay ?? (backoff === undefined ? 0 : DELAY_DEFAULT_SECONDS);
  const factor = backoff === "linear" ? runs : backoff === "exponential" ? 2 ** (runs - 1) : 1;
  return Math.max(0, Math.min(DELAY_MAX_MS, seconds * factor * 1000));
}

function jitterShare(rule: ProgramRule, read: (template: Template | undefined) => number | undefined): number {
  if (rule.jitter === undefined) return 0;
  if (rule.jitter.source === true) return 1;
  return Math.max(0, Math.min(1, read(rule.jitter) ?? 0));
}

/** `retry-after` of an HTTP answer in milliseconds: seconds or a date (RFC 9110, section 10.2.3); 0 for anything else. */
function retryAfterMs(result: ToolResult, { now }: RenderOptions): number {
  const header = result.http?.headers["retry-after"];
  if (typeof header !== "string" || header.trim() === "") return 0;
  const seconds = Number(header);
  const waitMs = Number.isNaN(seconds) ? Date.parse(header) - (now?.() ?? Number.NaN) : seconds * 1000;
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : 0;
}

function numberOf(template: Template | undefined, scope: Scope, options: RenderOptions): number | undefined {
  if (template === undefined) return undefined;
  const value = template.render(scope, options);
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}
