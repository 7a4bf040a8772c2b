import type { ExecutionItem } from "../api/types.ts";

/**
 * The rows of a list on the page. Pages that are read again update their rows in place; new rows wait while the user is at a
 * row, so that nothing moves under the pointer.
 */

/** A page as the server gives it. */
export interface ListPage {
  executions: readonly ExecutionItem[];
  next_cursor: string | null;
}

/** The list as it stands on the page. */
export interface ListState {
  /** Newest first. */
  rows: readonly ExecutionItem[];
  /** Newer than all rows, and not shown yet, newest first. */
  waiting: readonly ExecutionItem[];
  /** There are more of them than one page. */
  waitingMore: boolean;
  /** Shown, and not what the filter asks for any more. */
  left: ReadonlySet<string>;
  /** Where the next older page begins; null at the end. */
  older: string | null;
  /** Where known pages begin: rows older than `below`, by `cursor`. */
  anchors: readonly { below: number; cursor: string }[];
}

/** Most rows that are kept, some 5 MB: filter by time to go further back. */
export const ROWS_MAX = 5_000;

/** Nothing is known yet. */
export const EMPTY: ListState = {
  rows: [],
  waiting: [],
  waitingMore: false,
  left: new Set(),
  older: null,
  anchors: [],
};

/** The list after its newest page was read. `held`: what is new waits. */
export function withNewest(state: ListState, page: ListPage, held: boolean): ListState {
  const newest = state.rows[0];
  if (newest === undefined)
    return { ...EMPTY, rows: page.executions, older: page.next_cursor, anchors: anchorsOf(page) };
  const from = lowestOf(page);
  // So many rows arrived between two reads that there may be a gap.
  const isApart = from > idOf(newest) && from < Number.POSITIVE_INFINITY;
  if (isApart) return held ? { ...state, waiting: page.executions, waitingMore: true } : withNewest(EMPTY, page, false);
  return withRange(state, page.executions, { below: Number.POSITIVE_INFINITY, from }, held);
}

/** The list after a page of it was read again: that of the rows older than `below`. */
export function withPage(state: ListState, page: ListPage, below: number, held: boolean): ListState {
  const { waiting, waitingMore, ...rest } = withRange(state, page.executions, { below, from: lowestOf(page) }, held);
  // What is new here began before rows that are shown, and was written after them: it is seen when the list is opened anew.
  return { ...rest, waiting: held ? state.waiting : waiting, waitingMore: held ? state.waitingMore : waitingMore };
}

/** The list with the next older page beneath it. */
export function withOlder(state: ListState, page: ListPage): ListState {
  const last = state.rows.at(-1);
  const older = page.executions.filter((row) => last === undefined || idOf(row) < idOf(last));
  return {
    ...state,
    rows: [...state.rows, ...older].slice(0, ROWS_MAX),
    older: page.next_cursor,
    anchors: [...state.anchors, ...anchorsOf(page)],
  };
}

/** Rows between two ids as they are now. Those that are not there any more leave, or are marked so while `held`. */
function withRange(
  state: ListState,
  found: readonly ExecutionItem[],
  { below, from }: { below: number; from: number },
  held: boolean,
): ListState {
  const unknown = new Map(found.map((row) => [row.execution_id, row]));
  const left = new Set(state.left);
  const rows: ExecutionItem[] = [];
  for (const row of state.rows) {
    const { execution_id: id } = row;
    const current = unknown.get(id);
    unknown.delete(id);
    const isMissed = current === undefined && idOf(row) < below && idOf(row) >= from;
    if (isMissed && !held) continue;
    if (isMissed) left.add(id);
    if (current !== undefined) left.delete(id);
    rows.push(current === undefined || isSame(row, current) ? row : current);
  }
  const fresh = [...unknown.values()];
  if (held) return { ...state, rows, left, waiting: fresh, waitingMore: false };
  const all = fresh.length === 0 ? rows : [...fresh, ...rows].sort((one, other) => idOf(other) - idOf(one));
  return { ...state, rows: all.slice(0, ROWS_MAX), left: new Set(), waiting: [], waitingMore: false };
}

/** The lowest id about which a page says something. */
function lowestOf({ executions, next_cursor: next }: ListPage): number {
  const last = executions.at(-1);
  if (next === null) return 0;
  return last === undefined ? Number.POSITIVE_INFINITY : idOf(last);
}

function anchorsOf(page: ListPage): { below: number; cursor: string }[] {
  const last = page.executions.at(-1);
  return page.next_cursor === null || last === undefined ? [] : [{ below: idOf(last), cursor: page.next_cursor }];
}

/** Ids grow in time, and are exact as numbers. */
export function idOf({ execution_id: id }: { execution_id: string }): number {
  return Number(id);
}

function isSame(one: ExecutionItem, other: ExecutionItem): boolean {
  return (
    one.status === other.status &&
    one.progress === other.progress &&
    one.ended_at === other.ended_at &&
    one.has_called === other.has_called &&
    JSON.stringify(one.now) === JSON.stringify(other.now)
  );
}
