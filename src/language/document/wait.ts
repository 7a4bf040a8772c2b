import { durationMs } from "../../schema/rules/durations.ts";
import type { Loop, Task } from "../../schema/words/playbook.ts";
import { isTimeZone, momentMs } from "../words/moments.ts";
import { checkApproval } from "./approval.ts";
import { field, isConstant, type Place, textOf } from "./source/place.ts";
import type { Reading } from "./source/reading.ts";

/** Of these a wait has exactly one. */
const WAITED_FOR = ["for", "until", "signal", "approval"] as const;

/** Reports what a `wait` task says about what it waits for that is wrong in every run. */
export function checkWait(reading: Reading, task: Place, fields: ReadonlyMap<string, Place>): void {
  const get = (key: string) => {
    const place = fields.get(key);
    return place === undefined || place.value === null ? undefined : place;
  };
  const wrong = (place: Place, what: string, hint: string) => reading.report("wrong-wait", place, what, hint);
  const [first, second] = WAITED_FOR.filter((key) => get(key) !== undefined);
  if (first === undefined) {
    wrong(task, "the wait says nothing of what it waits for", "write `for`, `until`, `signal` or `approval`");
  } else if (second !== undefined) {
    wrong(get(second) ?? task, `the wait has both \`${first}\` and \`${second}\``, "keep the one that is meant");
  }
  checkTime(reading, { ...task, fields });
  const signal = get("signal");
  if (signal !== undefined && isConstant(signal) && !isName(signal.value)) {
    wrong(signal, "`signal` must be a name", "write a text of at most 128 characters");
  }
  for (const key of ["key", "when"]) {
    const place = signal === undefined ? get(key) : undefined;
    if (place !== undefined) wrong(place, `\`${key}\` is about a signal`, "leave it out, or write `signal: <name>`");
  }
  const approval = get("approval");
  if (approval !== undefined) checkApproval(reading, approval);
  const then = get("on_timeout");
  if (then !== undefined && then.value !== "continue" && then.value !== "fail") {
    wrong(then, "`on_timeout` must be `continue` or `fail`", "leave it out to fail");
  }
}

function checkTime(reading: Reading, map: Place): void {
  const [duration, until, zone] = [field(map, "for"), field(map, "until"), field(map, "timezone")];
  const wrong = (place: Place, what: string, hint: string) => reading.report("wrong-wait", place, what, hint);
  if (duration !== undefined && isConstant(duration) && durationMs(duration.value) === undefined) {
    const hint = "write 250ms, 30s, 1h30m, 2d, or a number of seconds";
    wrong(duration, `\`for\` must be a duration, not \`${JSON.stringify(duration.value)}\``, hint);
  }
  const name = zone === undefined ? "UTC" : textOf(zone);
  const isZone = name !== undefined && isTimeZone(name);
  if (zone !== undefined && isConstant(zone) && !isZone) {
    wrong(zone, `\`${zone.value}\` is not a known time zone`, "write a name such as `Europe/Berlin`");
  }
  const text = until === undefined || !isConstant(until) ? undefined : String(until.value);
  if (until !== undefined && text !== undefined && momentMs(text, isZone ? name : "UTC") === undefined) {
    wrong(until, `\`until\` must be a moment, not \`${text}\``, "write 2026-01-31T12:00:00Z");
  }
}

/** Reports a step with a `wait` where it cannot wait by itself: beside other tasks, or where iterations share a worker. */
export function checkWaitPlace(reading: Reading, step: Place, tasks: readonly Task[], loop: Loop | undefined): void {
  const tool = field(step, "tool") ?? step;
  const wrong = (what: string, hint: string) => reading.report("wrong-wait", tool, what, hint);
  if (tasks.length > 1)
    wrong("a wait is the only task of its step", "put the other tasks into a step before or after it");
  if (loop?.cursor !== undefined)
    wrong("rows of a cursor cannot wait", "let a called playbook wait, or loop over a list");
  if (loop?.exec === "local") wrong("iterations of `exec: local` cannot wait", "leave out `exec: local`");
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value.trim() !== "" && value.length <= 128;
}
