import type { EventRecord } from "../../api/types.ts";
import { createMarks, type MarksAnswer } from "./marks.ts";
import { createEventPages, PAGE, type PageAnswer } from "./pages.ts";

/** Pages that are scrolled past in less than this are not requested, milliseconds. */
const SETTLE_MS = 40;

/** Requests to the server. */
export interface LogSource {
  marks(after: number, counted: number, signal: AbortSignal): Promise<MarksAnswer>;
  page(after: number, limit: number, signal: AbortSignal): Promise<PageAnswer>;
}

/** A log of any length, of which only what is looked at is held. */
export interface EventLog {
  /** Calls the listener after each change. */
  subscribe(listener: () => void): () => void;
  /** Another number after each change. */
  version(): number;
  /** The events counted so far. */
  size(): number;
  isCounted(): boolean;
  /** The event of this number from 0; undefined while it is not loaded. */
  at(index: number): EventRecord | undefined;
  /** These are looked at: loads their pages, those around them too, and lets others go. */
  show(from: number, to: number): void;
  /** The log may have become longer. */
  grow(): void;
  /** Where an event stands, or the one after it would. Rejects where the log cannot be read. */
  find(eventId: number): Promise<{ index: number; isThere: boolean }>;
  /** Numbers of the pages that may hold events between two moments, milliseconds since 1970. */
  pagesBetween(from: number, to: number): { first: number; last: number };
  /** Why the last call gave nothing; undefined when it did. */
  problem(): unknown;
  /** Begins reading; the function ends it. */
  open(): () => void;
}

/** A log that is read page by page. */
export function createEventLog(source: LogSource): EventLog {
  const listeners = new Set<() => void>();
  let version = 0;
  let problem: unknown;
  let wanted = { first: 0, last: 0 };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const notify = (error?: unknown) => {
    problem = error;
    version += 1;
    for (const listener of listeners) listener();
  };
  const marks = createMarks(source.marks);
  const { startOf, sizeOf } = marks;
  const pages = createEventPages({ read: source.page, startOf, sizeOf, onChange: () => notify(), onProblem: notify });
  const look = () => {
    timer = undefined;
    pages.want(wanted.first, wanted.last);
  };
  const growth = createGrowth(async (signal) => {
    await marks.grow(() => notify(), signal);
    look();
  }, notify);
  return {
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    version: () => version,
    size: () => Math.max(marks.count(), marks.isCounted() ? 0 : (pages.get(0)?.length ?? 0)),
    isCounted: marks.isCounted,
    at: (index) => pages.get(Math.floor(index / PAGE))?.[index % PAGE],
    show(from, to) {
      // Half a page to either side is loaded before it is looked at.
      const first = Math.floor(Math.max(0, from - PAGE / 2) / PAGE);
      const end = Math.max(0, Math.min(to + PAGE / 2, marks.count() - 1));
      const last = Math.max(first, Math.floor(end / PAGE));
      if (first === wanted.first && last === wanted.last) return;
      wanted = { first, last };
      timer ??= setTimeout(look, SETTLE_MS);
    },
    grow: () => void growth.run(),
    async find(eventId) {
      if (!marks.isCounted()) await growth.run();
      if (!marks.isCounted()) throw problem ?? new Error("The log's events could not be counted");
      const page = marks.pageOf(eventId);
      wanted = { first: page, last: page };
      await pages.load(page);
      const events = pages.get(page) ?? [];
      const place = events.findIndex((event) => event.event_id >= eventId);
      const index = page * PAGE + (place < 0 ? events.length : place);
      return { index, isThere: events[place]?.event_id === eventId };
    },
    pagesBetween: marks.pagesBetween,
    problem: () => problem,
    open() {
      void growth.run();
      look();
      return () => {
        growth.stop();
        pages.stop();
        clearTimeout(timer);
        timer = undefined;
      };
    },
  };
}

/** Runs `work` one at a time, once more where it was wanted meanwhile. Never rejects. */
function createGrowth(work: (signal: AbortSignal) => Promise<void>, onProblem: (error: unknown) => void) {
  let aborter = new AbortController();
  let running: Promise<void> | undefined;
  let isWanted = false;
  const repeat = async (signal: AbortSignal) => {
    try {
      while (isWanted && !signal.aborted) {
        isWanted = false;
        await work(signal);
      }
    } catch (error) {
      if (!signal.aborted) onProblem(error);
    } finally {
      if (!signal.aborted) running = undefined;
    }
  };
  return {
    run(): Promise<void> {
      isWanted = true;
      running ??= repeat(aborter.signal);
      return running;
    },
    stop(): void {
      aborter.abort();
      aborter = new AbortController();
      running = undefined;
    },
  };
}
