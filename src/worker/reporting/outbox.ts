import type { Attachment } from "../../ports/work-server.ts";
import { EVENT_BYTES_MAX } from "../../schema/api/event-input.ts";
import type { FlowEvent } from "../../schema/words/event.ts";

/*
 * Events of running commands on their way to the server. Those of one command keep their order: while some of them are in a
 * request that was not answered, its later ones wait. Commands among each other have no order.
 */

/** Most events of one request: the server's default limit. */
export const BATCH_EVENTS_MAX = 256;
/** Most bytes of events in one request. The server takes 2 MiB; the difference is room for the rest of the request. */
export const BATCH_BYTES_MAX = EVENT_BYTES_MAX;

/** An event, ready to be sent. */
export interface Text {
  json: string;
  /** With what is attached. */
  bytes: number;
  /** Large results that go with it, and the event itself: it is written anew where they were stored without it. */
  attached?: { event: FlowEvent; attachments: readonly Attachment[] };
  /** The end of an iteration that has a slot of its own. */
  endsIteration?: true;
  /** What this text reports on: it replaces an older waiting text about the same thing, so that they do not pile up. */
  newestOf?: string;
}

/** The events of one claim that were not sent yet. */
export interface Outbox<Claim> {
  readonly claim: Claim;
  waiting: Text[];
  /** Some are in a request that was not answered. */
  inFlight: boolean;
  /** The command's end is among the waiting, or was: no event follows. */
  ended: boolean;
  /** Nothing more is taken: the claim is lost, or its command was failed here. */
  closed: boolean;
  /** Stands in the queue. */
  queued: boolean;
}

/** What one request holds of one command. */
export interface Part<Claim> {
  outbox: Outbox<Claim>;
  texts: Text[];
  /** The command's end is among them. */
  ends: boolean;
}

/** Outboxes that have something to send, in the order in which they got it. */
export interface OutboxQueue<Claim> {
  open(claim: Claim): Outbox<Claim>;
  /** Adds what happened; `isEnd`: nothing follows. */
  add(outbox: Outbox<Claim>, texts: readonly Text[], isEnd: boolean): void;
  /** Takes what waits out again, unsent. */
  clear(outbox: Outbox<Claim>): void;
  /** The next request's parts: as much as one may hold, the longest waiting first. Empty when nothing can be sent. */
  take(): Part<Claim>[];
  /** The request with this part was answered: events that arrived meanwhile may follow. */
  answered(part: Part<Claim>): void;
  /** A command's end waits to be sent, or more than one request holds: no reason to wait for company. */
  isUrgent(): boolean;
  /** As much waits as one request holds. */
  isFull(): boolean;
  /** Commands whose ends wait to be sent, by their claims. */
  ended(): Claim[];
  isEmpty(): boolean;
  /** Bytes that wait or are in requests. */
  bytes(): number;
}

/** An empty queue. */
export function createOutboxQueue<Claim>(): OutboxQueue<Claim> {
  const queue: Outbox<Claim>[] = [];
  let bytes = 0;
  /* Of those in the queue. */
  let ends = 0;
  let events = 0;

  const count = (outbox: Outbox<Claim>) => {
    outbox.queued = true;
    events += outbox.waiting.length;
    if (outbox.ended) ends += 1;
  };
  const isFull = () => events >= BATCH_EVENTS_MAX || bytes >= BATCH_BYTES_MAX;
  const uncount = (outbox: Outbox<Claim>) => {
    outbox.queued = false;
    events -= outbox.waiting.length;
    if (outbox.ended) ends -= 1;
  };

  return {
    open: (claim) => ({ claim, waiting: [], inFlight: false, ended: false, closed: false, queued: false }),
    add(outbox, texts, isEnd) {
      const { queued } = outbox;
      if (queued) uncount(outbox);
      for (const text of texts) bytes += text.bytes - put(outbox.waiting, text);
      outbox.ended ||= isEnd;
      if (outbox.inFlight) return;
      if (!queued) queue.push(outbox);
      count(outbox);
    },
    clear(outbox) {
      if (outbox.queued) {
        uncount(outbox);
        queue.splice(queue.indexOf(outbox), 1);
      }
      bytes -= sizeOf(outbox.waiting);
      outbox.waiting = [];
    },
    take() {
      const parts: Part<Claim>[] = [];
      const room = { events: BATCH_EVENTS_MAX, bytes: BATCH_BYTES_MAX };
      for (const outbox of queue) {
        const texts = takeTexts(outbox, room);
        if (texts.length === 0) break;
        parts.push({ outbox, texts, ends: outbox.ended && outbox.waiting.length === texts.length });
        if (outbox.waiting.length > texts.length) break;
      }
      queue.splice(0, parts.length);
      for (const { outbox, texts } of parts) {
        uncount(outbox);
        outbox.inFlight = true;
        outbox.waiting = outbox.waiting.length === texts.length ? [] : outbox.waiting.slice(texts.length);
      }
      return parts;
    },
    answered({ outbox, texts }) {
      bytes -= sizeOf(texts);
      outbox.inFlight = false;
      if (outbox.waiting.length === 0) return;
      queue.push(outbox);
      count(outbox);
    },
    isUrgent: () => ends > 0 || isFull(),
    isFull,
    ended: () => queue.flatMap(({ ended, claim }) => (ended ? [claim] : [])),
    isEmpty: () => queue.length === 0,
    bytes: () => bytes,
  };
}

/** Adds a text; gives the bytes of the one whose place it took. */
function put(waiting: Text[], text: Text): number {
  const { newestOf } = text;
  const place = newestOf === undefined ? -1 : waiting.findIndex((older) => older.newestOf === newestOf);
  const older = waiting[place];
  if (older === undefined) {
    waiting.push(text);
    return 0;
  }
  waiting[place] = text;
  return older.bytes;
}

/** The first texts of an outbox that fit. */
function takeTexts<Claim>({ waiting }: Outbox<Claim>, room: { events: number; bytes: number }): Text[] {
  let count = 0;
  for (const { bytes } of waiting) {
    if (count === room.events || bytes > room.bytes) break;
    count += 1;
    room.bytes -= bytes;
  }
  room.events -= count;
  return count === waiting.length ? waiting : waiting.slice(0, count);
}

function sizeOf(texts: readonly Text[]): number {
  let bytes = 0;
  for (const text of texts) bytes += text.bytes;
  return bytes;
}
