import { Cron } from "croner";
import type { Schedule } from "../../schema/triggers/trigger.ts";

/*
 * Times of a schedule (control, rules 36 and 37). Patterns are read by croner, which knows the clocks of all zones: a fixed time that a change
 * of the clock leaves out is the moment of that change, and one that it repeats the first of the two; patterns with `*` or a step follow the
 * instants.
 */

/** Compiled patterns that are kept: compiling one takes as long as its next time, 0.1 ms. */
const KEPT_MAX = 1_000;
const kept = new Map<string, Compiled>();

/** A pattern in a zone, and what was asked of it last. */
interface Compiled {
  cron: Cron;
  /** The newest answers: of thousands that are due in one minute most have the same pattern, and each asks for that minute and for the next. */
  gaps: Gap[];
}

/** No time of the pattern lies after `from` and before `next`; undefined: none lies after `from`. */
interface Gap {
  from: number;
  next: number | undefined;
}

/** Answers of a pattern that are kept. */
const GAPS = 4;

/** The first time of a pattern after a moment. */
function nextOf(pattern: string, timezone: string, after: number): number | undefined {
  const { cron, gaps } = compiled(pattern, timezone);
  const known = gaps.find(({ from, next }) => from <= after && (next === undefined || after < next));
  if (known !== undefined) return known.next;
  const next = cron.nextRun(new Date(after))?.getTime();
  // Asked for a moment that is earlier than before: the same gap reaches farther back.
  const same = gaps.find((gap) => gap.next === next);
  if (same !== undefined) same.from = after;
  else gaps.splice(0, gaps.length, { from: after, next }, ...gaps.slice(0, GAPS - 1));
  return next;
}

function compiled(pattern: string, timezone: string): Compiled {
  const key = `${timezone} ${pattern}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const cron = new Cron(pattern, { timezone, mode: "5-or-6-parts", fixedTimeRule: "no-wildcard", paused: true });
  const [oldest] = kept.keys();
  if (kept.size >= KEPT_MAX && oldest !== undefined) kept.delete(oldest);
  const one: Compiled = { cron, gaps: [] };
  kept.set(key, one);
  return one;
}

/** Where a search for the first time of a pattern begins: its answer must not depend on a clock. */
const SEARCH_FROM = Date.UTC(2024, 0, 1);

/** Why a text is no pattern, as a phrase; undefined where it is one. */
export function cronProblem(pattern: string): string | undefined {
  // A moment would be read as a schedule of one fire.
  if (/^\s*\d{4}-/.test(pattern)) return "it is a moment, and no pattern of five or six fields";
  try {
    if (nextOf(pattern, "UTC", SEARCH_FROM) !== undefined) return undefined;
    return "no day fits it";
  } catch (error) {
    return String(error instanceof Error ? error.message : error).replace(/^CronPattern: /, "");
  }
}

/**
 * The first time of a schedule after a moment, both in milliseconds since 1970; undefined if it has no further one. `activeSince`: from when an
 * interval counts.
 */
export function nextDue(schedule: Schedule, after: number, activeSince: number): number | undefined {
  const { cron, everyMs, timezone } = schedule;
  if (everyMs !== undefined) {
    if (after < activeSince) return activeSince + everyMs;
    return activeSince + (Math.floor((after - activeSince) / everyMs) + 1) * everyMs;
  }
  const times = cron.flatMap((pattern) => nextOf(pattern, timezone, after) ?? []);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** The times after `from` up to `until`, both included at the end, `limit` at most. */
export function duesBetween(
  schedule: Schedule,
  { from, until, activeSince }: { from: number; until: number; activeSince: number },
  limit: number,
): number[] {
  const dues: number[] = [];
  for (let at = from; dues.length < limit; ) {
    const due = nextDue(schedule, at, activeSince);
    if (due === undefined || due > until) break;
    dues.push(due);
    at = due;
  }
  return dues;
}

/** The last time after `from` up to `until`, without walking through all of them; undefined if no time is between them. */
export function lastDue(
  schedule: Schedule,
  { from, until, activeSince }: { from: number; until: number; activeSince: number },
): number | undefined {
  for (let back = MINUTE_MS; ; back *= 2) {
    const start = Math.max(from, until - back);
    const first = nextDue(schedule, start, activeSince);
    if (first !== undefined && first <= until) return lastFrom(schedule, first, until, activeSince);
    if (start === from) return undefined;
  }
}

const MINUTE_MS = 60_000;

/** The last time from `first`, which is one, up to `until`: by halves, as long as the later half has one. */
function lastFrom(schedule: Schedule, first: number, until: number, activeSince: number): number {
  let last = first;
  for (let end = until; ; ) {
    const middle = last + Math.floor((end - last) / 2);
    const next = nextDue(schedule, middle, activeSince);
    if (next !== undefined && next <= until) last = next;
    else if (middle - last < 1_000) return last;
    else end = middle;
    if (next !== undefined && next <= until) end = until;
  }
}

/** By how much a fire is put off, milliseconds: the same for a trigger and a time, on every server. */
export function jitterOf(triggerId: string, due: number, jitterMs: number): number {
  if (jitterMs <= 0) return 0;
  // FNV-1a: it spreads ids and minutes that differ in a digit.
  let hash = 0x811c9dc5;
  for (const character of `${triggerId}/${due}`) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193);
  hash ^= hash >>> 15;
  return (Math.imul(hash, 0x2c1b3c6d) >>> 0) % (jitterMs + 1);
}
