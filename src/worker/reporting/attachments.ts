import type { SavedResult } from "../../ports/result-store.ts";
import type { Attachment } from "../../ports/work-server.ts";
import { storedRef } from "../../schema/rules/stored-ref.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import { BATCH_BYTES_MAX, type Text } from "./outbox.ts";
import { eventText } from "./serialize-event.ts";

/** The text of an event with the large results that wait to go with it. */
export function withAttachments(
  text: Text,
  event: FlowEvent,
  waiting: ReadonlyMap<string, Attachment> | undefined,
): Text {
  if (waiting === undefined || waiting.size === 0 || event.type !== "task.done") return text;
  const attachments = resultsOf(event.result).flatMap(({ ref }) => waiting.get(ref?.ref ?? "") ?? []);
  if (attachments.length === 0) return text;
  const bytes = attachments.reduce((sum, { payload }) => sum + payload.byteLength, text.bytes);
  // One that is larger than a request may be is refused with it, and goes without what is attached then.
  return { ...text, bytes: Math.min(bytes, BATCH_BYTES_MAX), attached: { event, attachments } };
}

/**
 * The same text without attachments, which `upload` stores first: a server has refused them, or is of a version that does not know them.
 * Rejects as `upload` does.
 */
export async function withoutAttachments(
  text: Text,
  executionId: string,
  upload: (attachment: Attachment) => Promise<SavedResult>,
): Promise<Text> {
  if (text.attached === undefined) return text;
  const { attached, ...rest } = text;
  const { event, attachments } = attached;
  if (event.type !== "task.done" || event.result === undefined) return rest;
  const saved = new Map<string, SavedResult>();
  for (const attachment of attachments) saved.set(attachment.ref, await upload(attachment));
  const stored = (result: StoredResult): StoredResult => {
    const facts = saved.get(result.ref?.ref ?? "");
    if (result.ref === undefined || facts === undefined) return result;
    return { ...result, ref: storedRef(result.ref, { ...facts, store: facts.store ?? result.ref.store }) };
  };
  const result = stored(event.result);
  const virtual = Object.entries(result.virtual ?? {}).map(([name, field]) => [name, stored(field)] as const);
  const complete = { ...result, ...(virtual.length > 0 && { virtual: Object.fromEntries(virtual) }) };
  return { ...rest, json: eventText({ ...event, result: complete }, executionId).json };
}

/** A result and its further fields. */
function resultsOf(result: StoredResult | undefined): StoredResult[] {
  return result === undefined ? [] : [result, ...Object.values(result.virtual ?? {})];
}
