import { isTimeZone, momentMs } from "../../language/words/moments.ts";
import { durationMs } from "../../schema/rules/durations.ts";
import type { ApprovalWait, ResumePoint, SignalWait, Wait, WaitResult, Woken } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { approvalOf, approvalResult } from "./approval.ts";

/**
 * Ends the work on a command whose task waits: it is parked, and another claim goes on with it once what it waits for has come. No worker
 * waits meanwhile.
 */
export class Parked extends Error {
  readonly wait: Wait;
  readonly resume: ResumePoint;

  constructor(wait: Wait, resume: ResumePoint) {
    super("The command waits");
    this.wait = wait;
    this.resume = resume;
  }
}

/** Ends the work on a command that waits: it goes on with this run of its task. */
export function park(
  task: string,
  iteration: number | undefined,
  { runs: run, serial, startedAt }: { runs: number; serial: number; startedAt: number },
  wait: Wait,
): never {
  const which = iteration === undefined ? {} : { iteration };
  throw new Parked(wait, { task, ...which, run, serial, started_at: textOf(startedAt) });
}

/** A `wait` task: what it gives once what it waits for has come. Before that, `giveBack` ends the work on the command. */
export function runWait(
  config: JsonObject,
  timeoutMs: number | undefined,
  now: number,
  woken: Woken | undefined,
  giveBack: (wait: Wait) => never,
): ToolResult {
  if (woken !== undefined) return resultOf(woken, config);
  const isTime = config["signal"] == null && config["approval"] == null;
  const due = isTime ? dueOf(config, now) : undefined;
  if (due !== undefined && due <= now) return elapsed(now);
  const isCut = timeoutMs !== undefined && (due === undefined || now + timeoutMs < due);
  const cut = isCut ? { expires: textOf(now + timeoutMs), timeout_ms: timeoutMs } : {};
  return giveBack({ ...(due === undefined ? awaitedOf(config) : { kind: "timer", due: textOf(due) }), ...cut });
}

/** Throws `FlowError` INVALID_INPUT. */
function awaitedOf(config: JsonObject): SignalWait | ApprovalWait {
  if (config["approval"] == null) return signalOf(config);
  if (["signal", "for", "until"].some((key) => config[key] != null)) throw wrong("has either `approval` or another");
  return approvalOf(config);
}

/** What a wait came to: its signal has come, or people have decided, or its time-out has come, or its time. */
function resultOf(woken: Woken, config: JsonObject): ToolResult {
  const { wait, signal, at } = woken;
  const decided = approvalResult(woken);
  if (decided !== undefined) {
    const result: WaitResult = { outcome: decided.outcome, at: textOf(at), ...decided.rest };
    return { status: "ok", data: result };
  }
  if (signal !== undefined) {
    const { at: cameAt, data, ...of } = signal;
    const result: WaitResult = { outcome: "received", at: textOf(at), received_at: cameAt, ...of, data };
    return { status: "ok", data: result };
  }
  if (wait.expires === undefined) return elapsed(at);
  if (config["on_timeout"] === "continue") {
    const result: WaitResult = { outcome: "timeout", at: textOf(at) };
    return { status: "ok", data: result };
  }
  return failed(
    "timeout",
    "WAIT_TIMEOUT",
    `${missedText(wait)} within its time-out of ${(wait.timeout_ms ?? 0) / 1_000} s`,
  );
}

function missedText(wait: Wait): string {
  if (wait.kind === "signal") return `Signal '${wait.name}' did not come`;
  return wait.kind === "approval" ? `'${wait.title}' was not decided` : "The wait was not over";
}

function elapsed(at: number): ToolResult {
  const result: WaitResult = { outcome: "elapsed", at: textOf(at) };
  return { status: "ok", data: result };
}

/** Longest name or key of a signal, in characters. */
const NAME_CHARS_MAX = 128;

/** The signal for which a wait is. Throws `FlowError` INVALID_INPUT. */
function signalOf(config: JsonObject): SignalWait {
  const { signal, key, for: duration, until } = config;
  if (duration != null || until != null) throw wrong("has either `signal` or a time");
  const name = nameOf(signal);
  if (name === undefined) throw wrong(`takes the name of a \`signal\` as text, not ${shown(signal ?? null)}`);
  // A key that turns out to be nothing is a mistake: the wait would take what is meant for others.
  if (!Object.hasOwn(config, "key")) return { kind: "signal", name };
  const text = nameOf(key);
  if (text === undefined) throw wrong(`takes \`key\` as a text or a number, not ${shown(key ?? null)}`);
  return { kind: "signal", name, key: text };
}

function nameOf(value: Json | undefined): string | undefined {
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && text.trim() !== "" && text.length <= NAME_CHARS_MAX ? text : undefined;
}

/** When a wait for a time is over. Throws `FlowError` INVALID_INPUT for what is no time. */
function dueOf(config: JsonObject, now: number): number {
  const { for: duration, until, timezone = "UTC" } = config;
  if ((duration == null) === (until == null)) throw wrong("has either `for` or `until`");
  if (duration != null) {
    const ms = durationMs(duration);
    if (ms === undefined) throw wrong(`takes \`for\` as 250ms, 30s, 1h30m, 2d or seconds, not ${shown(duration)}`);
    return now + ms;
  }
  if (typeof timezone !== "string" || !isTimeZone(timezone)) throw wrong(`knows no time zone ${shown(timezone)}`);
  const at = typeof until === "string" ? momentMs(until, timezone) : undefined;
  if (at === undefined) throw wrong(`takes \`until\` as 2026-01-31T12:00:00Z, not ${shown(until ?? null)}`);
  return at;
}

function textOf(at: number): string {
  return new Date(at).toISOString();
}

function wrong(what: string): FlowError {
  return new FlowError("INVALID_INPUT", `A wait ${what}`);
}

function shown(value: Json): string {
  return JSON.stringify(value).slice(0, 100);
}
