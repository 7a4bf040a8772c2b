import type { Clock } from "../../ports/clock.ts";
import type { SavedResult } from "../../ports/result-store.ts";
import type { Attachment, ClaimedWork, ReportAnswer, Unavailable, WorkServer } from "../../ports/work-server.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { backOffMs } from "../backoff.ts";
import type { Slots } from "../slots.ts";
import type { WorkerEvent } from "../worker-event.ts";
import { withoutAttachments } from "./attachments.ts";
import type { Part, Text } from "./outbox.ts";
import { failureText } from "./serialize-event.ts";

/** Most commands that one request claims. */
const CLAIM_MAX = 256;

/** A claim that has something to report. */
export interface ReportingClaim {
  readonly work: ClaimedWork;
  /** Large results that go with its reports, until the server has them; absent: none do. */
  readonly attachments?: Map<string, Attachment>;
}

/** What delivering needs. `C` is what the worker keeps of a claim. */
export interface DeliveryParts<C extends ReportingClaim> {
  server: Pick<WorkServer, "report">;
  clock: Clock;
  random(): number;
  slots: Slots;
  /** A fresh idempotency key. */
  newKey(): string;
  /** Slots that are free when the server has this of a command. */
  freedBy(claim: C, ended: Ended): number;
  /** The server has events of this command. */
  acknowledged(claim: C, ended: Ended): void;
  /** Commands that came with an answer. */
  start(commands: ClaimedWork[]): void;
  /** Stores a large result that no server takes with a report. Rejects as `WritableResultStore.save` does. */
  upload?(claim: C, attachment: Attachment): Promise<SavedResult>;
  /** An answer was lost on its way, perhaps with commands in it. */
  answerLost(): void;
  emit(event: WorkerEvent): void;
}

/** What has ended of a command, as far as the server knows now. */
export interface Ended {
  /** Iterations with slots of their own. */
  iterations: number;
  /** The command itself. */
  isEnd: boolean;
}

/** What delivering needs from the owner of the events. */
export interface Delivery<C> {
  /** The next request claims commands too. */
  claims(): boolean;
  /** Nothing more is to be sent of this part's command, and its work is to stop. */
  abandon(part: Part<C>, why: string): void;
  /** The part was answered, whatever the answer. */
  answered(part: Part<C>): void;
  /** Aborted when nothing is to be sent any more. */
  signal: AbortSignal;
}

/**
 * Brings one batch to the server, again until it is answered. A refused batch is sent again without what it was refused for.
 * With it goes the claim for the slots that it frees: one round trip per step. Rejects when the signal aborts.
 */
export async function deliver<C extends ReportingClaim>(
  parts: DeliveryParts<C>,
  delivery: Delivery<C>,
  batch: Part<C>[],
): Promise<void> {
  const { slots } = parts;
  let left = batch;
  while (left.length > 0) {
    const freed = left.reduce((sum, part) => sum + freedBy(parts, part), 0);
    const limit = delivery.claims() ? Math.max(0, Math.min(CLAIM_MAX, freed + slots.free())) : 0;
    const promised = Math.max(0, limit - freed);
    slots.promise(promised);
    try {
      const answer = await send(parts, left, limit, delivery.signal);
      if (answer.status === "accepted") {
        settle(parts, delivery, left, answer);
        return;
      }
      if (answer.status === "lost") left = withoutLost(delivery, left, answer.events);
      else if (left.some(hasAttachments)) left = await uploaded(parts, delivery, left);
      else left = await withoutInvalid(parts, delivery, left, answer);
    } finally {
      // Not before the commands that came have taken their slots.
      slots.unpromise(promised);
    }
  }
}

/** Slots that are free when the server has taken this part. */
function freedBy<C extends ReportingClaim>(parts: Pick<DeliveryParts<C>, "freedBy">, part: Part<C>): number {
  return part.outbox.closed ? 0 : parts.freedBy(part.outbox.claim, endedIn(part));
}

function endedIn<C>({ texts, ends }: Part<C>): Ended {
  let iterations = 0;
  for (const { endsIteration } of texts) if (endsIteration === true) iterations += 1;
  return { iterations, isEnd: ends };
}

type Answer = Exclude<ReportAnswer, { status: "unavailable" }>;

/**
 * Attempts of a request that fails by an internal error of the server, before the command's events count as undeliverable: some
 * 25 to 50 seconds. Without that limit the command would be reported for ever, and keep its lease.
 */
const FAULTS_MAX = 11;
/** The same for a request with several commands. Each is then tried alone: one of them may be what the server fails over. */
const SHARED_FAULTS_MAX = 2;

/** The same request until it is answered, or the server has failed over it too often. */
async function send<C extends ReportingClaim>(
  { server, clock, random, newKey, emit }: DeliveryParts<C>,
  left: readonly Part<C>[],
  claim: number,
  signal: AbortSignal,
): Promise<Answer> {
  const faultsMax = left.length > 1 ? SHARED_FAULTS_MAX : FAULTS_MAX;
  let faults = 0;
  const events = left.flatMap(({ texts }) => texts.map(({ json }) => json));
  const secrets = left.flatMap(({ outbox }) => outbox.claim.work.secret ?? []);
  const texts = left.flatMap((part) => part.texts);
  const attachments = texts.flatMap(({ attached }, event) =>
    (attached?.attachments ?? []).map((attachment) => ({ ...attachment, event })),
  );
  const request = { key: newKey(), events, attachments, secrets, claim, unanswered: 0 };
  for (let tries = 1; ; tries += 1) {
    const answer = await server.report(request, signal).catch((error: unknown): Unavailable => {
      signal.throwIfAborted();
      request.unanswered += 1;
      return { status: "unavailable", message: messageOf(error) };
    });
    if (answer.status !== "unavailable") {
      if (tries > 1) emit({ type: "server.back", doing: "reporting", tries });
      return answer;
    }
    faults = answer.isFault === true ? faults + 1 : 0;
    if (faults >= faultsMax) return { status: "invalid", message: answer.message, indexes: [] };
    const delayMs = backOffMs(tries, random, answer.retryAfterMs);
    emit({ type: "server.unavailable", doing: "reporting", tries, delayMs, message: answer.message });
    await clock.sleep(delayMs, signal);
  }
}

function settle<C extends ReportingClaim>(
  parts: DeliveryParts<C>,
  delivery: Delivery<C>,
  left: readonly Part<C>[],
  { duplicate, commands }: { duplicate: boolean; commands: ClaimedWork[] },
): void {
  for (const part of left) {
    delivery.answered(part);
    forgetAttachments(part);
    const ended = endedIn(part);
    if (ended.isEnd || ended.iterations > 0) parts.acknowledged(part.outbox.claim, ended);
  }
  if (duplicate) parts.answerLost();
  parts.start(commands);
}

function withoutLost<C>(
  delivery: Delivery<C>,
  left: Part<C>[],
  events: readonly { index: number; reason: string }[],
): Part<C>[] {
  const reasons = new Map<Part<C>, string>();
  for (const { index, reason } of events) {
    const part = partAt(left, index);
    if (part !== undefined) reasons.set(part, reason);
  }
  // A refusal that names nothing of this request would come again forever.
  if (reasons.size === 0) for (const part of left) reasons.set(part, "the server refused its events");
  for (const [part, reason] of reasons) {
    delivery.abandon(part, reason);
    delivery.answered(part);
  }
  return left.filter((part) => !reasons.has(part));
}

function hasAttachments<C>({ texts }: Part<C>): boolean {
  return texts.some(({ attached }) => attached !== undefined);
}

function forgetAttachments<C extends ReportingClaim>({ outbox, texts }: Part<C>): void {
  for (const { attached } of texts)
    for (const { ref } of attached?.attachments ?? []) outbox.claim.attachments?.delete(ref);
}

/**
 * The same events, with the large results stored by requests of their own: what was refused may have been that they came with the
 * report. A command whose result cannot be stored fails.
 */
async function uploaded<C extends ReportingClaim>(
  parts: DeliveryParts<C>,
  delivery: Delivery<C>,
  left: Part<C>[],
): Promise<Part<C>[]> {
  const changed = await Promise.all(
    left.map(async (part): Promise<Part<C>[]> => {
      const { claim } = part.outbox;
      const upload = async (attachment: Attachment) => {
        if (parts.upload === undefined) throw new FlowError("NOT_STORED", "The server takes no result with a report");
        return await parts.upload(claim, attachment);
      };
      try {
        const texts: Text[] = [];
        for (const text of part.texts)
          texts.push(await withoutAttachments(text, claim.work.command.execution_id, upload));
        forgetAttachments(part);
        return [{ ...part, texts }];
      } catch (error) {
        delivery.signal.throwIfAborted();
        return part.outbox.closed ? lost(delivery, part) : failed(parts, delivery, part, messageOf(error));
      }
    }),
  );
  return changed.flat();
}

/** The claim was given up meanwhile: nothing of it is sent. */
function lost<C>(delivery: Delivery<C>, part: Part<C>): [] {
  delivery.answered(part);
  return [];
}

/** Fails the commands whose events no server can take; where it is not known which these are, each is tried alone. */
async function withoutInvalid<C extends ReportingClaim>(
  parts: DeliveryParts<C>,
  delivery: Delivery<C>,
  left: Part<C>[],
  { message, indexes }: { message: string; indexes: readonly number[] },
): Promise<Part<C>[]> {
  const named = new Set(indexes.map((index) => partAt(left, index)).filter((part) => part !== undefined));
  if (named.size === 0 && left.length > 1) {
    // In parallel: the request that the server fails on would hold up the others.
    await Promise.all(left.map((part) => deliver(parts, delivery, [part])));
    return [];
  }
  return left.flatMap((part) =>
    named.has(part) || left.length === 1 ? failed(parts, delivery, part, message) : [part],
  );
}

/** In place of the part the failure of its command; nothing when that is what was refused: its lease ends then. */
function failed<C extends ReportingClaim>(
  { clock, emit }: DeliveryParts<C>,
  delivery: Delivery<C>,
  part: Part<C>,
  message: string,
): Part<C>[] {
  const { outbox } = part;
  const { work } = outbox.claim;
  const isFailure = outbox.closed;
  delivery.abandon(part, "its events could not be reported");
  delivery.answered(part);
  emit({ type: "report.invalid", work, message });
  if (isFailure) return [];
  const error: TaskError = {
    kind: "unknown",
    code: "INTERNAL",
    message: `The server could not take the report of this command: ${message}`,
    retryable: false,
  };
  // It was never counted among what waits.
  const text = { ...failureText(work, error, clock.now()), bytes: 0 };
  return [{ outbox, texts: [text], ends: true }];
}

/** The part that the event at `index` of a request belongs to. */
function partAt<C>(parts: readonly Part<C>[], index: number): Part<C> | undefined {
  let first = 0;
  for (const part of parts) {
    if (index >= first && index < first + part.texts.length) return part;
    first += part.texts.length;
  }
  return undefined;
}
