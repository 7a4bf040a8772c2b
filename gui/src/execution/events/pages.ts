import type { EventRecord } from "../../api/types.ts";

/** Events of a page. */
export const PAGE = 500;
/** Pages that are kept: 6,000 events, whatever the log has. */
const KEPT_MAX = 12;

/** Some events, and where the next ones begin. */
export interface PageAnswer {
  events: readonly EventRecord[];
  next_cursor: string | null;
}

/** What the pages of a log are read with. */
export interface PagesDeps {
  read(after: number, limit: number, signal: AbortSignal): Promise<PageAnswer>;
  /** The event after which a page begins; undefined while that is not known. */
  startOf(page: number): number | undefined;
  /** How many events a page has by now. */
  sizeOf(page: number): number;
  /** Called after each page that was read. */
  onChange(): void;
  /** Called with the reason when a page could not be read. */
  onProblem(error: unknown): void;
}

/** The pages of a log that are looked at, and those that were last. */
export interface EventPages {
  get(page: number): readonly EventRecord[] | undefined;
  /** These are looked at: reads what they lack, stops reading others, and lets others go. */
  want(first: number, last: number): void;
  /** Reads what a page lacks, also while others are looked at. Rejects where it cannot be read. */
  load(page: number): Promise<void>;
  /** Stops reading. */
  stop(): void;
}

/** Pages that are read when they are wanted, the last twelve of them kept. */
export function createEventPages(deps: PagesDeps): EventPages {
  const pages = new Map<number, EventRecord[]>();
  const loads = new Map<number, { aborter: AbortController; done: Promise<void>; isAsked: boolean }>();
  let wanted = { first: 0, last: 0 };

  const isWanted = (page: number) => page >= wanted.first && page <= wanted.last;
  const lackOf = (page: number) => deps.sizeOf(page) - (pages.get(page)?.length ?? 0);
  const keep = (page: number, events: EventRecord[]) => {
    pages.delete(page);
    pages.set(page, events);
    for (const old of pages.keys()) {
      if (pages.size <= KEPT_MAX) break;
      if (!isWanted(old)) pages.delete(old);
    }
  };
  const fill = async (page: number, signal: AbortSignal) => {
    while (lackOf(page) > 0) {
      const have = pages.get(page) ?? [];
      const after = have.at(-1)?.event_id ?? deps.startOf(page);
      if (after === undefined) return;
      const events = await readFrom(deps, after, lackOf(page), signal);
      keep(page, [...have, ...events]);
      deps.onChange();
      // The log ended sooner than counted: deleted events are not waited for.
      if (events.length === 0) return;
    }
  };
  const load = (page: number, isAsked: boolean): Promise<void> => {
    const running = loads.get(page);
    if (running !== undefined) {
      running.isAsked ||= isAsked;
      return running.done;
    }
    const aborter = new AbortController();
    const done = fill(page, aborter.signal).finally(() => {
      if (loads.get(page)?.aborter === aborter) loads.delete(page);
    });
    loads.set(page, { aborter, done, isAsked });
    done.catch((error: unknown) => {
      if (!aborter.signal.aborted) deps.onProblem(error);
    });
    return done;
  };
  return {
    get: (page) => pages.get(page),
    load: (page) => load(page, true),
    want(first, last) {
      wanted = { first, last: Math.min(last, first + KEPT_MAX - 1) };
      for (const [page, { aborter, isAsked }] of loads) {
        // What was asked for is waited for: an event is looked for in it.
        if (isAsked || isWanted(page)) continue;
        aborter.abort();
        // At once: a user who returns to it meanwhile must not wait for the stopped request.
        loads.delete(page);
      }
      for (let page = wanted.first; page <= wanted.last; page += 1) {
        const have = pages.get(page);
        if (have !== undefined) keep(page, have);
        if (lackOf(page) > 0) load(page, false).catch(() => undefined);
      }
    },
    stop() {
      for (const { aborter } of loads.values()) aborter.abort();
      loads.clear();
    },
  };
}

/** Events after one of them, up to `limit`: where a filter finds little, one call may give less than there is. */
export async function readFrom(
  deps: Pick<PagesDeps, "read">,
  after: number,
  limit: number,
  signal: AbortSignal,
): Promise<EventRecord[]> {
  const events: EventRecord[] = [];
  for (let cursor: string | null = String(after); cursor !== null && events.length < limit; ) {
    const answer: PageAnswer = await deps.read(Number(cursor), limit - events.length, signal);
    signal.throwIfAborted();
    events.push(...answer.events);
    cursor = answer.next_cursor;
  }
  return events;
}
