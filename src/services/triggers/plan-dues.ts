import { jitterOf, lastDue, nextDue } from "../../language/words/schedule.ts";
import type { Catchup, Schedule } from "../../schema/triggers/trigger.ts";

/** A time that is decided about this long after it, ms, is late and not missed: a server that restarts is back by then. */
export const GRACE_MS = 60_000;
/** Times of a schedule that one look decides about; the next one goes on. */
export const DUES_MAX = 100;

/** Where a schedule stands. Milliseconds since 1970. */
export interface ScheduleState {
  triggerId: string;
  schedule: Schedule;
  catchup: Catchup;
  activeSince: number;
  /** The last time that was decided about, or when it was enabled. */
  countedFrom: number;
}

/** A time that has come. */
export interface PlannedDue {
  due: number;
  /** `missed`: it is too late for it. `late`: it was missed and is made up for. */
  is: "due" | "late" | "missed";
  /** The last of those that were missed and have no row of their own; absent: it stands for itself. */
  upTo?: number;
}

/** What is to be done about a schedule at a moment, and where it goes on. */
export interface DuesPlan {
  dues: PlannedDue[];
  countedFrom: number;
  /** The next time; null: it has no further one. */
  nextDueAt: number | null;
  /** When a server is to look at it again: that time, put off by the jitter. */
  wakeAt: number | null;
}

/**
 * Decides about the times of a schedule that have come (control, rules 36 to 38): those of the last minute fire, and older ones by `catchup`. In
 * their order, {@link DUES_MAX} at most; of a long row of missed ones the rest stands in the last. Depends on nothing but its arguments.
 */
export function planDues(state: ScheduleState, now: number): DuesPlan {
  const { triggerId, schedule, activeSince } = state;
  const ready = (due: number) => due + jitterOf(triggerId, due, schedule.jitterMs);
  const missed = missedOf(state, now, ready);
  const dues: PlannedDue[] = [];
  for (let at = state.countedFrom; ; ) {
    const due = nextDue(schedule, at, activeSince);
    const isOver = due === undefined || ready(due) > now || dues.length >= DUES_MAX;
    if (isOver) {
      const [nextDueAt, wakeAt] = due === undefined ? [null, null] : [due, ready(due)];
      return { dues, countedFrom: at, nextDueAt, wakeAt };
    }
    const one: PlannedDue = { due, is: missed.is(due) ? "missed" : now - ready(due) <= GRACE_MS ? "due" : "late" };
    at = due;
    if (one.is === "missed" && dues.length === DUES_MAX - 1) {
      const last = lastDue(schedule, { from: due, until: missed.allUpTo, activeSince });
      if (last !== undefined) one.upTo = at = last;
    }
    dues.push(one);
  }
}

/** Which times are too late. All up to `allUpTo` are. */
function missedOf(
  { schedule, catchup, activeSince, countedFrom }: ScheduleState,
  now: number,
  ready: (due: number) => number,
): { is(due: number): boolean; allUpTo: number } {
  const old = (due: number) => now - ready(due) > GRACE_MS;
  const allOld = now - GRACE_MS - schedule.jitterMs - 1;
  const within = (due: number) => catchup.windowMs === undefined || now - due <= catchup.windowMs;
  if (catchup.mode === "all") {
    if (catchup.windowMs === undefined) return { is: () => false, allUpTo: Number.NEGATIVE_INFINITY };
    return { is: (due) => old(due) && !within(due), allUpTo: Math.min(allOld, now - catchup.windowMs - 1) };
  }
  if (catchup.mode === "last") {
    const last = lastDue(schedule, { from: countedFrom, until: now, activeSince });
    if (last !== undefined && old(last) && within(last)) {
      return { is: (due) => old(due) && due < last, allUpTo: Math.min(allOld, last - 1) };
    }
  }
  return { is: old, allUpTo: allOld };
}
