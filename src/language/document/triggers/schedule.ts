import { CatchupSection, ScheduleSection } from "../../../schema/documents/trigger-document.ts";
import { durationMs } from "../../../schema/rules/durations.ts";
import { CATCHUP_MODES, type Catchup, type Schedule } from "../../../schema/triggers/trigger.ts";
import { isTimeZone } from "../../words/moments.ts";
import { cronProblem } from "../../words/schedule.ts";
import { field, type Place, textOf } from "../source/place.ts";
import { checkKeys, type Reading } from "../source/reading.ts";

/** Patterns of one schedule. Each costs a search for its next time with every fire. */
const CRON_MAX = 20;
const EVERY_MIN_MS = 1_000;
/** A fire that is put off longer is a schedule of its own. */
const JITTER_MAX_MS = 86_400_000;

/** `schedule` of a trigger, in one form; reports what is wrong with it. */
export function readSchedule(reading: Reading, place: Place): Schedule {
  checkKeys(reading, place, ScheduleSection);
  const [cron, every] = [field(place, "cron"), field(place, "every")];
  const wrong = (at: Place, what: string, hint: string) => reading.report("wrong-trigger", at, what, hint);
  if (cron === undefined && every === undefined) {
    wrong(place, "the schedule does not say when it fires", 'write `cron: "0 6 * * *"` or `every: 15m`');
  } else if (cron !== undefined && every !== undefined) {
    wrong(every, "the schedule has both `cron` and `every`", "keep the one that is meant");
  }
  const everyMs = readMs(reading, every, [EVERY_MIN_MS, Number.POSITIVE_INFINITY]);
  return {
    cron: readCron(reading, cron),
    ...(everyMs === undefined ? {} : { everyMs }),
    timezone: readZone(reading, field(place, "timezone")),
    jitterMs: readMs(reading, field(place, "jitter"), [0, JITTER_MAX_MS]) ?? 0,
  };
}

function readCron(reading: Reading, place: Place | undefined): string[] {
  if (place === undefined) return [];
  const places = Array.isArray(place.value) ? place.items : [place];
  if (places.length === 0 || places.length > CRON_MAX) {
    reading.report("wrong-trigger", place, `\`cron\` has ${places.length} patterns`, `write from 1 to ${CRON_MAX}`);
    return [];
  }
  return places.flatMap((one) => {
    const pattern = textOf(one);
    if (pattern === undefined) return [];
    const problem = cronProblem(pattern);
    const hint = "five fields: minute, hour, day of month, month, day of week; or six with seconds first";
    if (problem !== undefined)
      reading.report("wrong-trigger", one, `\`${pattern}\` is no pattern of times: ${problem}`, hint);
    return [pattern.trim()];
  });
}

function readZone(reading: Reading, place: Place | undefined): string {
  const name = textOf(place) ?? "UTC";
  if (isTimeZone(name)) return name;
  reading.report(
    "wrong-trigger",
    place,
    `\`${name}\` is not a known time zone`,
    "write a name such as `Europe/Berlin`",
  );
  return "UTC";
}

/** A duration in milliseconds within limits; a template is none, since no run is there to render it. */
function readMs(reading: Reading, place: Place | undefined, [min, max]: readonly [number, number]): number | undefined {
  if (place === undefined || (typeof place.value !== "string" && typeof place.value !== "number")) return undefined;
  const ms = durationMs(place.value);
  if (ms !== undefined && ms >= min && ms <= max) return ms;
  const hint =
    max === Number.POSITIVE_INFINITY
      ? `at least ${min / 1_000}s, as 90s, 15m, 1h30m or 2d`
      : "as 90s, 15m or 1h30m, a day at most";
  const message = `\`${place.key}\` must be a duration, not \`${place.value}\``;
  reading.report("wrong-trigger", place, message, ms === undefined ? "write 90s, 15m, 1h30m or 2d" : hint);
  return undefined;
}

/** `catchup` of a trigger; without it nothing is made up for. */
export function readCatchup(reading: Reading, place: Place | undefined): Catchup {
  checkKeys(reading, place, CatchupSection);
  const written = textOf(field(place, "mode"));
  const windowMs = readMs(reading, field(place, "window"), [EVERY_MIN_MS, Number.POSITIVE_INFINITY]);
  // Another word was reported with the shape.
  const mode = CATCHUP_MODES.find((one) => one === written) ?? "none";
  return { mode, ...(windowMs === undefined ? {} : { windowMs }) };
}
