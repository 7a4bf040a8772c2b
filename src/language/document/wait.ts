import type { Loop, Task } from "../../schema/words/playbook.ts";
import { durationMs, isTimeZone, momentMs } from "../words/moments.ts";
import { field, type Place, textOf } from "./source/place.ts";
import type { Reading } from "./source/reading.ts";

/** Reports what a `wait` task says about its time that is wrong in every run. */
export function checkWaitTime(reading: Reading, task: Place, fields: ReadonlyMap<string, Place>): void {
  const map: Place = { ...task, fields };
  const [duration, until, zone] = [field(map, "for"), field(map, "until"), field(map, "timezone")];
  const wrong = (place: Place, what: string, hint: string) => reading.report("wrong-wait", place, what, hint);
  if (duration !== undefined && until !== undefined) {
    wrong(until, "the wait has both `for` and `until`", "keep the one that is meant");
  }
  if (duration !== undefined && isConstant(duration) && durationMs(duration.value) === undefined) {
    const hint = "write 250ms, 30s, 1h30m, 2d, or a number of seconds";
    wrong(duration, `\`for\` must be a duration, not \`${JSON.stringify(duration.value)}\``, hint);
  }
  const name = zone === undefined ? "UTC" : textOf(zone);
  const isZone = name !== undefined && isTimeZone(name);
  if (zone !== undefined && isConstant(zone) && !isZone) {
    wrong(zone, `\`${zone.value}\` is no time zone`, "write a name such as `Europe/Berlin`");
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

function isConstant({ value }: Place): boolean {
  return typeof value !== "string" || !/\{[{%]/.test(value);
}
