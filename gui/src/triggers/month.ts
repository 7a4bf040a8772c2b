import type { Fire } from "../api/triggers.ts";
import { monthOf } from "./fire-states.ts";

/** One day of a calendar. */
export interface Day {
  /** Milliseconds since 1970 of its midnight here. */
  at: number;
  /** It belongs to the month that is shown, and not to the week at its edge. */
  isOfMonth: boolean;
  fires: readonly Fire[];
  /** Times that come. */
  coming: readonly number[];
}

/** Where a month begins and ends in the reader's own zone. */
export function monthBounds(month: string): { from: number; until: number } {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return { from: new Date(year, number - 1, 1).getTime(), until: new Date(year, number, 1).getTime() };
}

/** The month so many months later. */
export function monthAfter(month: string, by: number): string {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return monthOf(new Date(year, number - 1 + by, 1).getTime());
}

/** The weeks of a month, from Monday, with what has fired and what comes on each day of it. */
export function weeksOf(month: string, fires: readonly Fire[], coming: readonly number[]): Day[][] {
  const { from, until } = monthBounds(month);
  const first = new Date(from);
  // Days before the first of the month in its week; Sunday is the seventh.
  const before = (first.getDay() + 6) % 7;
  const dayAt = (offset: number) => new Date(first.getFullYear(), first.getMonth(), 1 + offset).getTime();
  const firesByDay = groupsOf(fires, ({ due_at: due }) => midnight(Date.parse(due)));
  const comingByDay = groupsOf(coming, midnight);
  const weeks: Day[][] = [];
  for (let offset = -before; dayAt(offset) < until; offset += 7) {
    weeks.push(
      Array.from({ length: 7 }, (_, index) => {
        const at = dayAt(offset + index);
        const isOfMonth = at >= from && at < until;
        return {
          at,
          isOfMonth,
          fires: isOfMonth ? (firesByDay.get(at)?.toReversed() ?? []) : [],
          coming: isOfMonth ? (comingByDay.get(at) ?? []) : [],
        };
      }),
    );
  }
  return weeks;
}

function midnight(at: number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}

/** Items by what they have in common, in their order. */
export function groupsOf<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
