import type { Context } from "hono";
import * as v from "valibot";
import type { ClaimSecrets } from "../../platform/crypto/claim-secrets.ts";
import { EVENT_BYTES_MAX, EventInput, fromInput, type ReportedEvent } from "../../schema/api/event-input.ts";
import { type Attachment, BatchEnvelope, SingleEventBody } from "../../schema/api/events.ts";
import { type PoolWork, poolWork } from "../../schema/rules/pool-label.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { ClaimInput } from "../../services/orchestration/rounds/types.ts";
import type { ReadyPayload } from "../../services/results/attachments.ts";
import type { Pools } from "../../services/workers/pools.ts";
import { CLAIM_HEADER } from "../http/authenticate.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { check, type InputProblem, invalid, PROBLEMS_MAX, problemsOf } from "../http/validate.ts";

/** An event of a request, and the execution that it is of, where the request says. */
export interface SentEvent {
  executionId: string | undefined;
  event: ReportedEvent;
  /** Large results that came with the report, to be written with it. */
  attached?: readonly ReadyPayload[];
}

/** The body of an event batch, read. */
export interface SentBatch {
  worker: string;
  events: SentEvent[];
  claim: ClaimInput | undefined;
  /** Secrets of claims, as sent. */
  secrets: readonly string[];
  /** What is said of the bytes that follow. */
  attachments: readonly Attachment[];
}

/**
 * Reads the body of a batch. `now` is used for events without a time. Throws `FlowError` INVALID_INPUT with the errors of each
 * event, or TOO_LARGE for more than `eventsMax`. `bodyBytes` is the length of the body: a short body has no oversized event, so
 * none is measured. It runs for every step of every execution: measured, 5 to 8 µs an event.
 */
export function readBatch(body: unknown, eventsMax: number, now: number, bodyBytes = 0): SentBatch {
  const envelope = check(BatchEnvelope, body, "The body");
  const { worker, execution_id, events, claim, claim_secrets: secrets = [], attachments = [] } = envelope;
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
  const wanted = claim === undefined ? undefined : claimOf(claim, worker);
  return { worker, events: sent, claim: wanted, secrets, attachments };
}

/** What a worker can run by its token: a pool's workers have the labels of their pool besides their own. */
export function abilityOf(
  c: Context<RouteEnvironment>,
  labels: JsonObject,
  pools: Pick<Pools, "has" | "hasOwn">,
): PoolWork & Pick<ClaimInput, "labels"> {
  const pool = c.get("pool");
  return { labels: { ...labels, ...pool?.labels }, ...poolWork(pool, pools) };
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

/**
 * Checks that a worker's events came with the secrets of their claims; whether these are the present ones is judged with the state of
 * their executions. An operator's need none. Throws `FlowError` claim_required with every event without one.
 */
export function checkReportSecrets(
  c: Context<RouteEnvironment>,
  secrets: Pick<ClaimSecrets, "claimOf">,
  given: readonly string[],
  events: readonly SentEvent[],
): void {
  if (c.get("role") !== "worker") return;
  const header = c.req.header(CLAIM_HEADER);
  const proven = new Set<string>();
  for (const secret of header === undefined ? given : [header, ...given]) {
    const claim = secrets.claimOf(secret);
    if (claim !== undefined) proven.add(`${claim.commandId}.${claim.attempt}`);
  }
  const lacking = events.flatMap(({ event: { command_id, attempt } }, index) =>
    proven.has(`${command_id}.${attempt}`) ? [] : [{ index, command_id, reason: "secret" }],
  );
  const [first] = lacking;
  if (first === undefined) return;
  const what = `${lacking.length} of ${events.length} events came without the secret of their claim; nothing of the batch was written`;
  const next = "Send the claim_secret of each command in claim_secrets";
  throw new FlowError(
    "claim_required",
    `${what}. The first, event ${first.index}, is of command ${first.command_id}. ${next}`,
    {
      detail: { reason: "missing", events: lacking },
    },
  );
}
