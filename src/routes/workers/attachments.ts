import type { Attachment } from "../../schema/api/events.ts";
import { executionOfRef, JSON_TYPE } from "../../schema/api/results.ts";
import { REPORT_BYTES_HEADER } from "../../schema/routes/workers.ts";
import { lifetimeMs } from "../../schema/rules/durations.ts";
import { storedRef } from "../../schema/rules/stored-ref.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import { kvRowPlace } from "../../schema/words/result.ts";
import type { Attachments, ReadyPayload } from "../../services/results/attachments.ts";
import { invalid } from "../http/validate.ts";
import type { SentEvent } from "./event-batch.ts";

/** A body of a report: its JSON, and the bytes of its attachments. */
export interface SplitBody {
  report: Buffer;
  attached: Buffer;
}

/** Splits a body by what its header says is the length of its JSON. Throws `FlowError` INVALID_INPUT for one that it cannot have. */
export function splitBody(body: Buffer, header: string): SplitBody {
  const bytes = /^\d{1,9}$/.test(header) ? Number(header) : Number.NaN;
  if (!(bytes <= body.length)) {
    const what = `The header '${REPORT_BYTES_HEADER}' says that the report is '${header}' bytes long, and the body has ${body.length}`;
    throw new FlowError("INVALID_INPUT", `${what}. Send the length of the JSON in bytes`);
  }
  return { report: body.subarray(0, bytes), attached: body.subarray(bytes) };
}

/**
 * Puts each attachment to its event, whose reference then says what is stored. The payloads, in their order. Throws `FlowError`
 * INVALID_INPUT if they are not as the report says, or where this server keeps results of that length outside of its database; as
 * `Results.attachment` does for the payloads themselves.
 */
export async function takeAttachments(
  results: Pick<Attachments, "attachment">,
  attached: Buffer,
  attachments: readonly Attachment[],
  events: readonly SentEvent[],
): Promise<ReadyPayload[]> {
  checkLengths(attached.length, attachments);
  const taken: ReadyPayload[] = [];
  const refs = new Set<string>();
  let place = 0;
  for (const [index, attachment] of attachments.entries()) {
    const { event, bytes } = attachment;
    const sent = events[event];
    const result = sent === undefined ? undefined : resultWith(sent, attachment.ref);
    if (sent === undefined || result === undefined || refs.has(attachment.ref)) throw misplaced(index, attachment);
    refs.add(attachment.ref);
    const payload = await results.attachment({
      ref: attachment.ref,
      payload: attached.subarray(place, place + bytes),
      ...defined({ ttlMs: ttlOf(attachment, index), compression: attachment.compression }),
    });
    if (payload === undefined) throw notHere(bytes);
    complete(result, payload);
    sent.attached = [...(sent.attached ?? []), payload];
    taken.push(payload);
    place += bytes;
  }
  return taken;
}

function checkLengths(length: number, attachments: readonly Attachment[]): void {
  const announced = attachments.reduce((sum, { bytes }) => sum + bytes, 0);
  if (announced === length) return;
  const message = `must have ${length} bytes together, as many as follow the report, and not ${announced}`;
  throw invalid("The body", [{ path: "attachments", message }]);
}

/** The result of an event that is, or the virtual field of it that is, under this reference; of its own execution alone. */
function resultWith({ executionId, event }: SentEvent, ref: string): StoredResult | undefined {
  const result = event.type === "task.done" ? event.result : undefined;
  if (result === undefined || executionOfRef(ref) !== executionId) return undefined;
  return [result, ...Object.values(result.virtual ?? {})].find((one) => one.ref?.ref === ref);
}

function ttlOf({ ttl }: Attachment, index: number): number | undefined {
  const ttlMs = ttl === undefined ? undefined : lifetimeMs(ttl);
  if (ttl === undefined || ttlMs !== undefined) return ttlMs;
  throw invalid("The body", [
    { path: `attachments.${index}.ttl`, message: "must be a time such as 90s, 15m, 1h or 30d" },
  ]);
}

/** What the worker cannot know of a reference: everything that the store says. */
function complete(result: StoredResult, payload: ReadyPayload): void {
  const { ref, bytes, sha256, compression, expiresAt } = payload;
  const given = result.ref;
  if (given === undefined) return;
  const { fields } = given.meta;
  result.ref = storedRef(
    { ...given, scope: "permanent", meta: { content_type: JSON_TYPE, ...(Array.isArray(fields) && { fields }) } },
    {
      ...{ bytes, sha256, store: "kv", compression: compression ?? undefined },
      ...{ expiresAt: new Date(expiresAt).toISOString(), meta: kvRowPlace(ref) },
    },
  );
}

function misplaced(index: number, { event, ref }: Attachment): FlowError {
  const message = `is for ${ref}, of which event ${event} has no result, or another attachment is; it must be of that event's execution`;
  return invalid("The body", [{ path: `attachments.${index}`, message }]);
}

function notHere(bytes: number): FlowError {
  const what = `This server keeps results of ${bytes.toLocaleString("en")} bytes outside of its database`;
  return new FlowError(
    "INVALID_INPUT",
    `${what}: they cannot come with a report. Store them with PUT /api/results first`,
  );
}
