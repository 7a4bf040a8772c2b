import type { ClaimedWork } from "../../ports/work-server.ts";
import { after } from "../deadline.ts";
import type { Report } from "../deps.ts";
import { createEventLoopTurns } from "../yield-to-event-loop.ts";
import { type Delivery, type DeliveryParts, deliver } from "./deliver.ts";
import { createOutboxQueue, type Outbox, type Part } from "./outbox.ts";
import { eventText } from "./serialize-event.ts";

/** Requests that are under way at a time: what gathers meanwhile goes together, which makes batches without a timer. */
const REQUESTS_MAX = 2;
/** How long events that end no command may wait for company. */
const BATCH_WAIT_MS = 20;
/** Bytes waiting or under way above which new reports have to wait. */
const OUTSTANDING_BYTES_MAX = 8 * 1024 * 1024;

/** What a {@link Reporter} needs. `C` is what its owner keeps of a claim. */
export interface ReporterParts<C extends { readonly work: ClaimedWork }> extends DeliveryParts<C> {
  /** The claim is no longer this worker's, or nothing more can be reported for it: its work is to stop. */
  giveUp(claim: C, why: string): void;
}

/** Brings events to the server: gathered, in order for each command, and again until the server has them. */
export interface Reporter<C> {
  /** Where a command reports to. It resolves before the server has the events, as long as not too many wait. */
  open(claim: C): { report: Report; drop(): void };
  /** Asks for no more commands. */
  claimNoMore(): void;
  /** Sends nothing more; requests under way are broken off. */
  stop(): void;
}

/** Makes a reporter. */
export function createReporter<C extends { readonly work: ClaimedWork }>(parts: ReporterParts<C>): Reporter<C> {
  const queue = createOutboxQueue<C>();
  const turns = createEventLoopTurns(parts.clock);
  const room = createRoom(() => queue.bytes() <= OUTSTANDING_BYTES_MAX);
  const stopped = new AbortController();
  let claims = true;

  const close = (outbox: Outbox<C>) => {
    outbox.closed = true;
    queue.clear(outbox);
    room.look();
  };
  const abandon = ({ outbox }: Part<C>, why: string) => {
    if (outbox.closed) return;
    close(outbox);
    parts.giveUp(outbox.claim, why);
  };
  const answered = (part: Part<C>) => {
    queue.answered(part);
    room.look();
  };
  const delivery: Delivery<C> = { claims: () => claims, abandon, answered, signal: stopped.signal };
  const sender = createSender(parts, {
    next: (isOverdue) => ((queue.isUrgent() || isOverdue) && !stopped.signal.aborted ? queue.take() : []),
    isEmpty: () => queue.isEmpty(),
    send: async (batch) => {
      try {
        await deliver(parts, delivery, batch);
      } catch (error) {
        if (stopped.signal.aborted) return;
        parts.emit({ type: "fault", doing: "reporting", error });
        for (const part of batch) abandon(part, "reporting it failed");
      }
    },
  });

  const reportTo = (outbox: Outbox<C>): Report => {
    const { execution_id } = outbox.claim.work.command;
    return async (events) => {
      // After the end nothing is news. A server that finds an event after it refuses the end too, as of no open command.
      if (outbox.closed || outbox.ended) return;
      const texts = events.map((event) => eventText(event, execution_id));
      const isEnd = events.some(({ type }) => type === "command.completed" || type === "command.failed");
      queue.add(outbox, texts, isEnd);
      sender.added(queue.isUrgent());
      if (turns.isOver()) await turns.next();
      await room.wait();
    };
  };

  return {
    open(claim) {
      const outbox = queue.open(claim);
      return { report: reportTo(outbox), drop: () => close(outbox) };
    },
    claimNoMore() {
      claims = false;
    },
    stop() {
      stopped.abort(new Error("The worker stops"));
      room.open();
    },
  };
}

/** What {@link createSender} takes batches from. */
interface BatchSource<C> {
  next(isOverdue: boolean): Part<C>[];
  isEmpty(): boolean;
  send(batch: Part<C>[]): Promise<void>;
}

/** Sends batches, two at a time, as soon as there is a reason: an end of a command, or company that did not come. */
function createSender<C>({ clock }: Pick<DeliveryParts<never>, "clock">, work: BatchSource<C>) {
  let requests = 0;
  let isScheduled = false;
  let isOverdue = false;
  let cancelTimer: (() => void) | undefined;

  const flush = () => {
    isScheduled = false;
    while (requests < REQUESTS_MAX) {
      const batch = work.next(isOverdue);
      if (batch.length === 0) return;
      if (work.isEmpty()) {
        isOverdue = false;
        cancelTimer?.();
        cancelTimer = undefined;
      }
      requests += 1;
      void work.send(batch).then(() => {
        requests -= 1;
        // What ended no command and came meanwhile has waited long enough.
        isOverdue = !work.isEmpty();
        flush();
      });
    }
  };
  return {
    added(isUrgent: boolean) {
      if (isUrgent && !isScheduled) {
        // In the next turn of the loop: a command's end comes right after its last task, and commands end together.
        isScheduled = true;
        setImmediate(flush);
      }
      if (isUrgent || requests === REQUESTS_MAX) return;
      cancelTimer ??= after(clock, BATCH_WAIT_MS, () => {
        cancelTimer = undefined;
        isOverdue = true;
        flush();
      });
    },
  };
}

/** Callers that wait until there is room. */
function createRoom(isThere: () => boolean) {
  const waiting: (() => void)[] = [];
  let isOpen = false;
  const releaseAll = () => {
    for (const go of waiting.splice(0)) go();
  };
  return {
    wait: () => (isOpen || isThere() ? undefined : new Promise<void>((resolve) => waiting.push(resolve))),
    look() {
      if (waiting.length > 0 && isThere()) releaseAll();
    },
    open() {
      isOpen = true;
      releaseAll();
    },
  };
}
