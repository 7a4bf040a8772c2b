import * as v from "valibot";
import { APPROVAL_TEXTS_MAX, PERSONS_MAX } from "../../words/approval.ts";
import { isJsonObject, type JsonObject } from "../../words/json.ts";
import { storableText, Timestamp } from "../../words/wire.ts";

const count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(Number.MAX_SAFE_INTEGER));
const milliseconds = v.pipe(v.number(), v.minValue(0));
const shortText = storableText(1_024);
const persons = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(PERSONS_MAX));

const waitLimit = { expires: v.exactOptional(Timestamp), timeout_ms: v.exactOptional(milliseconds) };

const names = v.exactOptional(v.pipe(v.array(shortText), v.maxLength(100)));
const people = { roles: names, users: names };

/** What a parked command waits for, as a worker reports it. */
export const WaitInput = v.variant("kind", [
  v.strictObject({ kind: v.literal("timer"), due: Timestamp, ...waitLimit }),
  v.strictObject({ kind: v.literal("signal"), name: shortText, key: v.exactOptional(shortText), ...waitLimit }),
  v.strictObject({
    kind: v.literal("approval"),
    title: storableText(APPROVAL_TEXTS_MAX.title),
    description: v.exactOptional(storableText(APPROVAL_TEXTS_MAX.description)),
    form: v.exactOptional(v.custom<JsonObject>((value) => isJsonObject(value))),
    approvers: v.exactOptional(v.strictObject({ ...people, not_starter: v.exactOptional(v.literal(true)) })),
    required: persons,
    rejections: persons,
    remind_ms: v.exactOptional(v.pipe(v.number(), v.minValue(1))),
    escalate: v.exactOptional(v.strictObject({ after_ms: milliseconds, to: v.strictObject(people) })),
    link_login: v.exactOptional(v.literal(true)),
    ...waitLimit,
  }),
  v.strictObject({ kind: v.literal("retry"), due: Timestamp }),
]);

/** It waits for a signal or for people alone, however long that takes. */
export function isOpenEnded(wait: unknown): boolean {
  return v.is(v.looseObject({ kind: v.picklist(["signal", "approval"]), expires: v.optional(v.undefined()) }), wait);
}

/** Where a parked command goes on, as a worker reports it. */
export const ResumeInput = v.strictObject({
  task: shortText,
  iteration: v.exactOptional(count),
  run: count,
  serial: count,
  started_at: Timestamp,
  // Made by a worker for a worker: the server keeps it, and reads nothing of it.
  pipeline: v.exactOptional(v.record(v.string(), v.unknown())),
});
