import * as v from "valibot";
import { EVENT_BYTES_MAX, EventInput, fromInput, type ReportedEvent } from "../../schema/api/event-input.ts";
import { BatchEnvelope, SingleEventBody } from "../../schema/api/events.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { ClaimInput } from "../../services/orchestration/rounds/types.ts";
import { check, type InputProblem, invalid, PROBLEMS_MAX, problemsOf } from "../http/validate.ts";

/** An event of a request, and the execution that it is of, where the request says. */
export interface SentEvent {
  executionId: string | undefined;
  event: ReportedEvent;
}

/** The body of an event batch, read. */
export interface SentBatch {
  worker: string;
  events: SentEvent[];
  claim: ClaimInput | undefined;
}

/**
 * Reads the body of a batch. `now` is used for events without a time. Throws `FlowError` INVALID_INPUT with the errors of each
 * event, or TOO_LARGE for more than `eventsMax`. `bodyBytes` is the length of the body: a short body has no oversized event, so
 * none is measured. It runs for every step of every execution: measured, 5 to 8 µs an event.
 */
export function readBatch(body: unknown, eventsMax: number, now: number, bodyBytes = 0): SentBatch {
  const { worker, execution_id, events, claim } = check(BatchEnvelope, body, "The body");
  if (events.length > eventsMax) {
    throw new FlowError(
      "TOO_LARGE",
      `A batch has ${eventsMax} events at most, this one ${events.length}. Send several`,
    );
  }
  if (events.length === 0) throw invalid("The body", [{ path: "events", message: "must not be empty" }]);
  const problems: (InputProblem & { index: number })[] = [];
  const sent: SentEvent[] = [];
  events.forEach((event, index) => {
    const read = tooLarge(event, bodyBytes) ?? readOne(event, worker, execution_id, now);
    if ("event" in read) sent.push(read);
    else problems.push(...read.map((problem) => ({ index, ...problem })));
  });
  if (problems.length > 0) throw invalid("The batch", problems.slice(0, PROBLEMS_MAX));
  return { worker, events: sent, claim: claim === undefined ? undefined : claimOf(claim, worker) };
}

/** Reads the body of a single event. Throws `FlowError` INVALID_INPUT. */
export function readEvent(body: unknown, now: number, bodyBytes = 0): { worker: string; event: SentEvent } {
  const problems = tooLarge(body, bodyBytes);
  if (problems !== undefined) throw invalid("The body", problems);
  const { worker, ...input } = check(SingleEventBody, body, "The body");
  const event = fromInput(input, worker, now);
  if (typeof event === "string") throw invalid("The body", [problemIn(event)]);
  return { worker, event: { executionId: input.execution_id, event } };
}

/** What is wrong with an event that is larger than one may be: it carries what belongs into a store. */
function tooLarge(event: unknown, bodyBytes: number): InputProblem[] | undefined {
  if (bodyBytes <= EVENT_BYTES_MAX) return undefined;
  const bytes = Buffer.byteLength(JSON.stringify(event) ?? "");
  if (bytes <= EVENT_BYTES_MAX) return undefined;
  const message = `makes an event of ${bytes} bytes, and ${EVENT_BYTES_MAX} is the most: store what is large, and send its reference`;
  return [{ path: "result.context", message }];
}

function readOne(
  value: unknown,
  worker: string,
  executionId: string | undefined,
  now: number,
): SentEvent | InputProblem[] {
  const parsed = v.safeParse(EventInput, value);
  if (!parsed.success) return problemsOf(parsed.issues);
  const event = fromInput(parsed.output, worker, now);
  if (typeof event === "string") return [problemIn(event)];
  return { executionId: parsed.output.execution_id ?? executionId, event };
}

/** `fromInput` says `field: what is wrong`. */
function problemIn(text: string): InputProblem {
  const [path = "", ...rest] = text.split(": ");
  return { path, message: rest.join(": ") };
}

function claimOf(claim: NonNullable<v.InferOutput<typeof BatchEnvelope>["claim"]>, worker: string): ClaimInput {
  const { limit, kinds, labels = {}, wait_ms: waitMs = 0 } = claim;
  return { worker, limit, kinds, labels, waitMs };
}
