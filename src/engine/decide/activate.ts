import { ReferenceNeeded } from "../../language/views/references.ts";
import type { Scope } from "../../language/views/scope.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { isJsonObject, type Json } from "../../schema/words/json.ts";
import { isDeeper, JSON_DEPTH_MAX } from "../../schema/words/json-depth.ts";
import type { EngineEnv } from "../env.ts";
import { quoted, templateError } from "../errors.ts";
import type { Program, ProgramStep } from "../program/program.ts";
import { arrived } from "../state/evolve.ts";
import { loopAccumulate } from "../state/results.ts";
import { type ExecutionState, knownStep, type Override } from "../state/state.ts";
import { endStep, type StepEnd, skippedBy } from "./boundary.ts";
import { guardScope, holds, render } from "./scope.ts";

/**
 * Most open iterations of one loop if it sets no limit itself. Authors expect a parallel loop to run "all at once", but a
 * million commands at once would only make the queue long.
 */
export const OPEN_ITERATIONS_MAX = 1_000;

/**
 * Starts every waiting step whose live upstreams are all resolved. A forward arc waits while any running or waiting step can
 * still reach its target; a back arc never waits. A step that is already running keeps its token.
 */
export function startReady(state: ExecutionState, program: Program, env: EngineEnv): FlowEvent[] {
  if (state.failure !== null) return [];
  for (const name of state.waiting) {
    const step = program.steps.get(name);
    const known = knownStep(state, name);
    if (step === undefined || known?.token == null || known.run !== null) continue;
    if (!known.token.back && isBlocked(state, program, step)) continue;
    // One at a time: this decision may change what the next one sees.
    return startStep(state, program, step, known.token, env);
  }
  return [];
}

function isBlocked(state: ExecutionState, program: Program, step: ProgramStep): boolean {
  const blocks = (name: string) => {
    const other = program.steps.get(name);
    return other !== undefined && other.index !== step.index && program.graph.reaches(other.index, step.index);
  };
  return state.active.some(blocks) || state.waiting.some(blocks);
}

/** Starts one step: its guard, its admission, its loop or its command. */
export function startStep(
  state: ExecutionState,
  program: Program,
  step: ProgramStep,
  token: { input: Readonly<Record<string, Json>>; from: string | null },
  env: EngineEnv,
): FlowEvent[] {
  const known = knownStep(state, step.step.name);
  const given = known?.given === undefined ? undefined : Object.keys(known.given);
  const input = known === undefined ? token.input : arrived(known, token);
  const end = { step, stepRunId: env.newId(), result: null, input, given, startedAt: env.now };
  if (known?.override !== undefined) return endOverridden(state, program, end, known.override, env);
  let opened: Scope | undefined;
  const scope = () => (opened ??= guardScope(state, program, step, { input, from: token.from, given }, env));
  try {
    const refusal = refusalOf(step, scope, env);
    if (refusal !== undefined) return endStep(state, program, { ...end, error: null, skipped: refusal }, env);
  } catch (error) {
    if (error instanceof ReferenceNeeded) throw error;
    return endStep(state, program, { ...end, error: templateError(error, step.step.name, "guard") }, env);
  }
  if (step.loop === undefined) {
    return [
      {
        type: "command.issued",
        at: env.now,
        command_id: env.newId(),
        step: step.step.name,
        step_run_id: end.stepRunId,
      },
    ];
  }
  try {
    return [loopStarted(step, end.stepRunId, scope(), env)];
  } catch (error) {
    if (error instanceof ReferenceNeeded) throw error;
    return endStep(state, program, { ...end, error: templateError(error, step.step.name, "loop") }, env);
  }
}

/** A person has said how it ends before it began: neither its guard nor its tasks are looked at. */
function endOverridden(
  state: ExecutionState,
  program: Program,
  end: Omit<StepEnd, "error">,
  override: Override,
  env: EngineEnv,
): FlowEvent[] {
  const { action, result = null, error = null } = override;
  const told = { ...end, result: action === "complete" ? result : null, error, ...skippedBy(override) };
  return endStep(state, program, told, env);
}

function refusalOf(step: ProgramStep, scope: () => Scope, env: EngineEnv): "when" | "admission" | undefined {
  if (step.when !== undefined && !holds(step.when, scope(), env)) return "when";
  for (const rule of step.admit) {
    if (rule.when !== undefined && !holds(rule.when, scope(), env)) continue;
    return holds(rule.allow, scope(), env) ? undefined : "admission";
  }
  return undefined;
}

function loopStarted(step: ProgramStep, stepRunId: string, scope: Scope, env: EngineEnv): FlowEvent {
  const { loop, collection, maxInFlight, claim } = step.loop ?? {};
  const limit = (template: typeof maxInFlight, what: string, fallback: number) =>
    template === undefined ? fallback : positive(render(template, scope, env), what, step.step.name, env);
  const accumulate = loopAccumulate(step.step);
  const base = {
    type: "loop.started" as const,
    at: env.now,
    step: step.step.name,
    step_run_id: stepRunId,
    ...(accumulate !== undefined && { accumulate }),
  };
  if (claim !== undefined) {
    const frames = Math.min(limit(maxInFlight, "max_in_flight", 1), OPEN_ITERATIONS_MAX);
    const frameMs =
      claim.maxSeconds === undefined ? undefined : seconds(render(claim.maxSeconds, scope, env), step, env);
    return {
      ...base,
      max_in_flight: Math.min(limit(claim.rowConcurrency, "row_concurrency", 1), OPEN_ITERATIONS_MAX),
      max_rows: limit(claim.maxRows, "max_rows", 1),
      ...(frames > 1 && { max_frames: frames }),
      ...(frameMs !== undefined && { frame_ms: frameMs }),
    };
  }
  const window = loop?.mode === "parallel" ? limit(maxInFlight, "max_in_flight", OPEN_ITERATIONS_MAX) : 1;
  const value = collection === undefined ? null : render(collection, scope, env);
  const items = itemsOf(value, step.step.name);
  if ("count" in items) refuseSecret(value, "in", step.step.name, env);
  return { ...base, ...items, max_in_flight: Math.min(window, OPEN_ITERATIONS_MAX) };
}

/**
 * Refuses a value that contains a secret: the number of a loop's iterations, in total and at a time, is written to its events
 * and displayed.
 */
function refuseSecret(value: Json, what: string, step: string, { sealing }: EngineEnv): void {
  if (sealing?.isIn(value) !== true) return;
  throw new Error(
    `'${what}' of the loop of step '${step}' is a secret number, and anyone can see how often a loop runs`,
  );
}

function positive(value: Json, what: string, step: string, env: EngineEnv): number {
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number === "number" && Number.isInteger(number) && number >= 1) {
    refuseSecret(value, what, step, env);
    return number;
  }
  const got = quoted(value, env);
  throw new Error(`'${what}' of the loop of step '${step}' must be a whole number from 1, got ${got}`);
}

/** `frame.max_seconds` in milliseconds. */
function seconds(value: Json, step: ProgramStep, env: EngineEnv): number {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number === "number" && number > 0 && number <= SECONDS_MAX) {
    refuseSecret(value, "max_seconds", step.step.name, env);
    return Math.ceil(number * 1_000);
  }
  const got = quoted(value, env);
  throw new Error(`'max_seconds' of the loop of step '${step.step.name}' must be seconds above 0, got ${got}`);
}

/** A year. */
const SECONDS_MAX = 31_536_000;

/** The collection as items (language document, section 6): a list, a map's pairs, rows, JSON text, or a number. */
export function itemsOf(value: Json, step: string): { items: Json[] } | { count: number } {
  if (Array.isArray(value)) return { items: value };
  if (typeof value === "number" && Number.isFinite(value)) return { count: Math.max(0, Math.floor(value)) };
  if (typeof value === "string") return { items: textItems(value, step) };
  if (isJsonObject(value)) {
    const rows = value["rows"];
    if (Array.isArray(rows)) return { items: rows };
    return { items: Object.entries(value).map(([key, item]) => ({ key, value: item })) };
  }
  throw new Error(
    `the collection of step '${step}' is ${value === null ? "null or undefined" : JSON.stringify(value)}; 'loop.in' must give a list, a map, a text or a number`,
  );
}

function textItems(text: string, step: string): Json[] {
  if (text.trim() === "") return [];
  if (isDeeper(text)) {
    const what = `the collection of step '${step}' is text with more than ${JSON_DEPTH_MAX} lists and maps within each other`;
    throw new Error(`${what}. Reshape it in a python task`);
  }
  try {
    const parsed: Json = JSON.parse(text);
    if (Array.isArray(parsed)) return parsed;
  } catch {
    // Not JSON: the text itself is the only item.
  }
  return [text];
}
