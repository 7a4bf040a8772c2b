/* Moments as authors write them (control, rules 20 and 37). */

const MOMENT = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?))?(Z|[+-]\d{2}:?\d{2})?$/i;

/**
 * The moment that a text means, milliseconds since 1970: RFC 3339, and without an offset in the given zone. A time that a change of the
 * clock leaves out is the moment of that change; one that it repeats is the first of the two. Undefined for another text.
 */
export function momentMs(text: string, timeZone: string): number | undefined {
  const [, day, time = "00:00", offset] = MOMENT.exec(text.trim()) ?? [];
  if (day === undefined) return undefined;
  const asUtc = Date.parse(`${day}T${time}${offset?.toUpperCase() ?? "Z"}`);
  // A day that no month has is the first of the next one to the parser.
  if (Number.isNaN(asUtc) || !new Date(Date.parse(`${day}T00:00Z`)).toISOString().startsWith(day)) return undefined;
  return offset === undefined ? instantOf(asUtc, timeZone) : asUtc;
}

/** True for a zone that this runtime knows. */
export function isTimeZone(name: string): boolean {
  // Nearly every wait asks for it, and a formatter costs a millisecond.
  if (name === "UTC") return true;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

const DAY_MS = 86_400_000;

/** The instant at which clocks of a zone show a time, which is given as if it were UTC. */
function instantOf(wall: number, timeZone: string): number {
  const offset = offsetsOf(timeZone);
  const [before, after] = [offset(wall - DAY_MS), offset(wall + DAY_MS)];
  const shown = [wall - before, wall - after].filter((instant) => instant + offset(instant) === wall);
  if (shown.length > 0) return Math.min(...shown);
  // No clock shows it: the change is at the last instant that still has the offset of before.
  let [low, high] = [wall - DAY_MS, wall + DAY_MS];
  while (high - low > 1_000) {
    const middle = Math.floor((low + high) / 2_000) * 1_000;
    if (offset(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** How far clocks of a zone are ahead of UTC at an instant, milliseconds. */
function offsetsOf(timeZone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    ...{ timeZone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric" },
    ...{ hour: "numeric", minute: "numeric", second: "numeric" },
  });
  return (instant) => {
    const parts = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(instant / 1_000) * 1_000;
  };
}
