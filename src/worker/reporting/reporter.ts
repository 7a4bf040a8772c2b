import { endsClaim } from "../../engine/state/accept.ts";
import type { ClaimedWork } from "../../ports/work-server.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { after } from "../deadline.ts";
import type { Report } from "../deps.ts";
import { createEventLoopTurns } from "../yield-to-event-loop.ts";
import { withAttachments } from "./attachments.ts";
import { type Delivery, type DeliveryParts, deliver, type ReportingClaim } from "./deliver.ts";
import { createOutboxQueue, type Outbox, type Part, type Text } from "./outbox.ts";
import { eventText } from "./serialize-event.ts";

/** Requests that are under way at a time: what gathers meanwhile goes together, which makes batches without a timer. */
const REQUESTS_MAX = 2;
/**
 * While a request is under way, the next one waits this long for the ends of half of the commands that still run, or for the answer.
 * Where commands end one by one, as those of interpreters do, requests are half as many; where all end together, both are
 * under way at once.
 */
const COMPANY_WAIT_MS = 5;
/** How long events that end no command may wait for company. */
const BATCH_WAIT_MS = 20;
/** Bytes waiting or under way above which new reports have to wait. */
const OUTSTANDING_BYTES_MAX = 8 * 1024 * 1024;

/** What a {@link Reporter} needs. `C` is what its owner keeps of a claim. */
export interface ReporterParts<C extends ReportingClaim> extends DeliveryParts<C> {
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
export function createReporter<C extends ReportingClaim>(parts: ReporterParts<C>): Reporter<C> {
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
  const slotsOf = (claims: readonly C[]) =>
    claims.reduce((sum, claim) => sum + parts.freedBy(claim, { iterations: 0, isEnd: true }), 0);
  const sender = createSender(parts, {
    next: (isOverdue) => ((queue.isUrgent() || isOverdue) && !stopped.signal.aborted ? queue.take() : []),
    isEmpty: () => queue.isEmpty(),
    hasCompany: (reporting) => queue.isFull() || 2 * slotsOf(queue.ended()) >= parts.slots.taken() - reporting,
    slotsOf,
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
    const { attachments, work } = outbox.claim;
    const { command } = work;
    return async (events) => {
      // After the end nothing is news. A server that finds an event after it refuses the end too, as of no open command.
      if (outbox.closed || outbox.ended) return;
      const texts = events.map((event) => withAttachments(textOf(event, command), event, attachments));
      const isEnd = events.some(endsClaim);
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

function textOf(event: FlowEvent, { execution_id, loop }: ClaimedWork["command"]): Text {
  const text = eventText(event, execution_id);
  const endsIteration = event.type === "loop.iteration.completed" || event.type === "loop.iteration.failed";
  return loop?.at_once === true && endsIteration ? { ...text, endsIteration } : text;
}

/** What {@link createSender} takes batches from. */
interface BatchSource<C> {
  next(isOverdue: boolean): Part<C>[];
  isEmpty(): boolean;
  /**
   * So much waits that the next request need not wait for the answer to the last one. `reporting`: slots of commands whose ends are
   * in requests under way, and which have them until the answer.
   */
  hasCompany(reporting: number): boolean;
  slotsOf(claims: readonly C[]): number;
  send(batch: Part<C>[]): Promise<void>;
}

/** Sends batches, two at a time, as soon as there is a reason: an end of a command, or company that did not come. */
function createSender<C>({ clock }: Pick<DeliveryParts<never>, "clock">, work: BatchSource<C>) {
  let requests = 0;
  let reporting = 0;
  let isScheduled = false;
  let isOverdue = false;
  let cancelTimer: (() => void) | undefined;
  let cancelCompany: (() => void) | undefined;

  const flush = (isLate = false) => {
    isScheduled = false;
    while (requests < REQUESTS_MAX) {
      if (requests > 0 && !isLate && !work.hasCompany(reporting)) {
        if (!work.isEmpty()) waitForCompany();
        return;
      }
      cancelCompany?.();
      cancelCompany = undefined;
      const batch = work.next(isOverdue);
      if (batch.length === 0) return;
      if (work.isEmpty()) {
        isOverdue = false;
        cancelTimer?.();
        cancelTimer = undefined;
      }
      const ends = work.slotsOf(batch.flatMap((part) => (part.ends ? [part.outbox.claim] : [])));
      requests += 1;
      reporting += ends;
      void work.send(batch).then(() => {
        requests -= 1;
        reporting -= ends;
        // What ended no command and came meanwhile has waited long enough.
        isOverdue = !work.isEmpty();
        flush();
      });
    }
  };
  const waitForCompany = () => {
    cancelCompany ??= after(clock, COMPANY_WAIT_MS, () => {
      cancelCompany = undefined;
      flush(true);
    });
  };
  return {
    added(isUrgent: boolean) {
      if (isUrgent && !isScheduled) {
        // In the next turn of the loop: a command's end comes right after its last task, and commands end together.
        isScheduled = true;
        setImmediate(() => flush());
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
