import { durationMs, isTimeZone, momentMs } from "../../language/words/moments.ts";
import type { ResumePoint, Wait, WaitResult, Woken } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";

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

/** A `wait` task: what it gives once its time has come. Before that, `giveBack` ends the work on the command. */
export function runWait(
  config: JsonObject,
  timeoutMs: number | undefined,
  now: number,
  woken: Woken | undefined,
  giveBack: (wait: Wait) => never,
): ToolResult {
  if (woken === undefined) {
    const due = dueOf(config, now);
    const isCut = timeoutMs !== undefined && now + timeoutMs < due;
    const cut = isCut ? { expires: textOf(now + timeoutMs), timeout_ms: timeoutMs } : {};
    if (due > now) return giveBack({ kind: "timer", due: textOf(due), ...cut });
  }
  if (woken?.wait.expires !== undefined) {
    const message = `The wait was not over within its time-out of ${(woken.wait.timeout_ms ?? 0) / 1_000} s`;
    return failed("timeout", "WAIT_TIMEOUT", message);
  }
  const result: WaitResult = { outcome: "elapsed", at: textOf(woken?.at ?? now) };
  return { status: "ok", data: result };
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
