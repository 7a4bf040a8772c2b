import type { LogSource } from "../events/log.ts";
import { createMarks } from "../events/marks.ts";
import { PAGE, readFrom } from "../events/pages.ts";
import type { Span } from "./pieces.ts";
import { createTraceFold, type StepTraces } from "./step-traces.ts";
import { type TraceEvent, traceEventOf } from "./trace-event.ts";

/** A log of so many pages is read as a whole; of a longer one, the stretches that are looked at. */
const WHOLE_PAGES_MAX = 40;
/** Pages that are read of a longer log: 100,000 events, of which the trace keeps little. */
const PAGES_MAX = 200;
/** Listeners hear of new pages no more often than this, milliseconds. */
const TOLD_MS = 150;
/** Workers report by their own clocks: so much around a stretch is read too, milliseconds. */
const CLOCKS_MS = 2_000;

/** Reads what a trace shows of an execution's log. */
export interface TraceReader {
  subscribe(listener: () => void): () => void;
  /** Another number after each change. */
  version(): number;
  traces(): StepTraces;
  /** What was read, in no order: the past is folded from it. */
  events(): readonly TraceEvent[];
  /** The log was read to its end. */
  isRead(): boolean;
  /** The log is too long to be read as a whole, as far as is known. */
  isLong(): boolean;
  /** How much of what is wanted was read, in events; undefined when there is nothing left to read. */
  progress(): { read: number; of: number } | undefined;
  /** The log may have become longer. */
  grow(): void;
  /** This stretch is looked at; of a short log everything is read anyway. */
  want(span: Span): void;
  /** Begins reading; the function ends it. */
  open(): () => void;
}

/** A reader of one log. */
export function createTraceReader(source: LogSource): TraceReader {
  const pages = createPages(source);
  const news = createNews();
  let aborter: AbortController | undefined;
  let isReading = false;
  let isGrown = false;
  const run = async (signal: AbortSignal) => {
    if (isReading) return;
    isReading = true;
    try {
      while (!signal.aborted && (isGrown || pages.open().length > 0)) {
        if (isGrown) {
          isGrown = false;
          await pages.grow(signal);
        }
        const [page] = pages.open();
        if (page === undefined) continue;
        await pages.read(page, signal);
        news.tellSoon();
      }
    } catch {
      // A user who may not read the log sees the steps without their parts; a lost connection is tried again with the next growth.
    } finally {
      if (!signal.aborted) {
        isReading = false;
        news.tellSoon();
      }
    }
  };
  const go = () => {
    if (aborter !== undefined) void run(aborter.signal);
  };
  return {
    ...{ subscribe: news.subscribe, version: news.version },
    ...{
      traces: pages.traces,
      events: pages.events,
      isRead: pages.isRead,
      isLong: pages.isLong,
      progress: pages.progress,
    },
    grow() {
      isGrown = true;
      go();
    },
    want(span) {
      pages.want(span);
      isGrown = true;
      go();
    },
    open() {
      aborter = new AbortController();
      isReading = false;
      isGrown = true;
      go();
      return () => {
        aborter?.abort();
        aborter = undefined;
        news.stop();
      };
    },
  };
}

/** Who listens for new pages: they are told at a limited rate. */
function createNews() {
  const listeners = new Set<() => void>();
  let version = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  const tell = () => {
    timer = undefined;
    version += 1;
    for (const listener of listeners) listener();
  };
  return {
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    version: () => version,
    tellSoon() {
      timer ??= setTimeout(tell, TOLD_MS);
    },
    stop,
  };
}

/** The pages of a log: which of them are wanted, and what those that were read say. */
function createPages(source: LogSource) {
  const marks = createMarks(source.marks);
  const fold = createTraceFold();
  const events: TraceEvent[] = [];
  const done = new Map<number, { count: number; last: number }>();
  const spans: Span[] = [];
  const wanted = new Set<number>();

  const pageCount = () => Math.ceil(marks.count() / PAGE);
  const isWhole = () => pageCount() <= WHOLE_PAGES_MAX;
  const wantPages = (span: Span) => {
    const { first, last } = marks.pagesBetween(span.from - CLOCKS_MS, span.to + CLOCKS_MS);
    for (let page = first; page <= last; page += 1) wanted.add(page);
  };
  const lackOf = (page: number) => marks.sizeOf(page) - (done.get(page)?.count ?? 0);
  const open = () => {
    const pages = isWhole() ? Array.from({ length: pageCount() }, (_, page) => page) : [...wanted].slice(0, PAGES_MAX);
    return pages.filter((page) => lackOf(page) > 0);
  };
  return {
    /** Those that are wanted and not yet read. */
    open,
    /** Counts new events; of a log that is too long to be read as a whole not to its end before a stretch of it is looked at. */
    async grow(signal: AbortSignal) {
      await marks.grow(
        () => undefined,
        signal,
        () => spans.length > 0 || isWhole(),
      );
      for (const span of marks.isCounted() ? spans : []) wantPages(span);
    },
    async read(page: number, signal: AbortSignal) {
      const before = done.get(page) ?? { count: 0, last: marks.startOf(page) ?? 0 };
      const found = await readFrom({ read: source.page }, before.last, lackOf(page), signal);
      signal.throwIfAborted();
      // Deleted events are not waited for.
      const count = found.length === 0 ? marks.sizeOf(page) : before.count + found.length;
      done.set(page, { count, last: found.at(-1)?.event_id ?? before.last });
      for (const record of found) {
        const event = traceEventOf(record);
        if (event === undefined) continue;
        fold.take(event);
        events.push(event);
      }
    },
    traces: () => fold.steps,
    events: () => events,
    isRead: () => marks.isCounted() && isWhole() && open().length === 0,
    isLong: () => !isWhole(),
    progress() {
      const left = open().length;
      const of = isWhole() ? pageCount() : wanted.size;
      return left === 0 ? undefined : { read: (of - left) * PAGE, of: Math.min(of * PAGE, marks.count()) };
    },
    want(span: Span) {
      spans.push(span);
    },
  };
}
