import { PAGE } from "./pages.ts";

/** The last event of a page. */
export interface Mark {
  event_id: number;
  created_at: string;
}

/** Each so many of the events, and how many there are. */
export interface MarksAnswer {
  count: number;
  last_event_id: number;
  marks: readonly Mark[];
  more: boolean;
}

/** Where the pages of a log begin, as far as counted. */
export interface Marks {
  count(): number;
  /** False until it was counted to its end once. */
  isCounted(): boolean;
  /** The event after which a page begins. */
  startOf(page: number): number | undefined;
  /** How many events a page has. */
  sizeOf(page: number): number;
  /** The page in which an event is, or would be. */
  pageOf(eventId: number): number;
  /** Numbers of the pages that may hold events between two moments, milliseconds since 1970. */
  pagesBetween(from: number, to: number): { first: number; last: number };
  /**
   * Counts new events. `onChange` is called after each part that found more. It stops before the end where `isOn` says no after a
   * part. Rejects if they cannot be read.
   */
  grow(onChange: () => void, signal: AbortSignal, isOn?: () => boolean): Promise<void>;
}

/** A table of contents of which `read` gives a part. */
export function createMarks(
  read: (after: number, counted: number, signal: AbortSignal) => Promise<MarksAnswer>,
): Marks {
  const marks: Mark[] = [];
  let count = 0;
  let last = 0;
  let isCounted = false;
  const lastPage = () => Math.max(0, Math.ceil(count / PAGE) - 1);
  return {
    count: () => count,
    isCounted: () => isCounted,
    startOf: (page) => (page === 0 ? 0 : marks[page - 1]?.event_id),
    // The first page is read while nothing is counted yet.
    sizeOf: (page) => (count === 0 && !isCounted && page === 0 ? PAGE : Math.min(PAGE, count - page * PAGE)),
    pageOf(eventId) {
      const found = marks.findIndex((mark) => mark.event_id >= eventId);
      return found < 0 ? marks.length : found;
    },
    pagesBetween(from, to) {
      const first = marks.findIndex((mark) => Date.parse(mark.created_at) >= from);
      const end = marks.findIndex((mark) => Date.parse(mark.created_at) > to);
      return { first: first < 0 ? lastPage() : first, last: end < 0 ? lastPage() : Math.min(end, lastPage()) };
    },
    async grow(onChange, signal, isOn = () => true) {
      for (let more = true; more && (count === 0 || isOn()); ) {
        const answer = await read(last, count, signal);
        signal.throwIfAborted();
        const hasChanged = answer.count !== count || (!isCounted && !answer.more);
        count = answer.count;
        last = answer.last_event_id;
        marks.push(...answer.marks);
        more = answer.more;
        isCounted = isCounted || !more;
        if (hasChanged) onChange();
      }
    },
  };
}
