import * as v from "valibot";
import { APPROVAL_TEXTS_MAX, DECISION_BYTES_MAX } from "../../words/approval.ts";
import type { Json } from "../../words/json.ts";
import {
  IdInput,
  IdText,
  isStorable,
  JsonObjectValue,
  JsonValue,
  NextCursor,
  PageQuery,
  Timestamp,
} from "../../words/wire.ts";

/* Approvals (control, section 2 and rules 27 to 31). */

/** What an approval may be. */
export const APPROVAL_STATUSES = ["open", "approved", "rejected", "expired", "cancelled"] as const;

/** Query of `GET /api/approvals`. */
export const ApprovalsQuery = v.object({
  ...PageQuery.entries,
  status: v.exactOptional(v.picklist(APPROVAL_STATUSES)),
  mine: v.exactOptional(
    v.pipe(
      v.picklist(["true", "false", ""]),
      v.description(
        "`true`, or without a value: those that are open, and over which the caller may decide and has not.",
      ),
    ),
  ),
  execution_id: v.exactOptional(IdInput),
});

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const bytesOf = (data: Json) => new TextEncoder().encode(JSON.stringify(data)).length;
const Decision = v.picklist(["approve", "reject"]);

const DecisionAnswer = v.object({
  decision: Decision,
  by: v.pipe(
    v.string(),
    v.description(
      "The person; `operator`: an operator's token; `link`: a caller with a link; `link:` and an address: with that addressee's link.",
    ),
  ),
  at: Timestamp,
  data: v.exactOptional(v.pipe(JsonValue, v.description("For those who may view the playbook."))),
  comment: v.exactOptional(v.string()),
});

/** Answer of `GET /api/approvals/{approval_id}`. */
export const ApprovalAnswer = v.object({
  approval_id: IdText,
  execution_id: IdText,
  step: v.string(),
  iteration: v.exactOptional(v.pipe(count, v.description("Of a loop."))),
  path: v.string(),
  title: v.string(),
  description: v.exactOptional(v.pipe(v.string(), v.description("Text or Markdown of the author: to be sanitised."))),
  form: v.exactOptional(v.pipe(JsonObjectValue, v.description("JSON Schema (2020-12) of the data of an approval."))),
  status: v.picklist(APPROVAL_STATUSES),
  opened_at: Timestamp,
  due: v.exactOptional(v.pipe(Timestamp, v.description("When it expires."))),
  closed_at: v.exactOptional(Timestamp),
  required: v.pipe(count, v.description("How many must approve.")),
  rejections: v.pipe(count, v.description("With so many rejections it is rejected.")),
  approvers: v.pipe(
    v.object({
      roles: v.array(v.string()),
      users: v.array(v.string()),
      not_starter: v.boolean(),
      who_may_execute: v.pipe(v.boolean(), v.description("Users who may execute the playbook may decide too.")),
    }),
    v.description("Who may decide."),
  ),
  decisions: v.array(DecisionAnswer),
  messages: v.exactOptional(
    v.pipe(
      v.array(
        v.object({
          number: count,
          to: v.exactOptional(v.pipe(v.string(), v.description("The addressee, who alone has its link."))),
          playbook: v.string(),
          created_at: Timestamp,
          sent_at: v.exactOptional(Timestamp),
          execution_id: v.exactOptional(v.pipe(IdText, v.description("It tells people."))),
          error: v.exactOptional(v.pipe(v.string(), v.description("Why it was not started."))),
        }),
      ),
      v.description("What `notify` has sent, newest first, of one approval; for those who may view the playbook."),
    ),
  ),
  may_decide: v.pipe(v.boolean(), v.description("Whether the caller may decide now.")),
});
export type ApprovalAnswer = v.InferOutput<typeof ApprovalAnswer>;

/** Answer of `GET /api/approvals`, newest first. */
export const ApprovalsAnswer = v.object({ approvals: v.array(ApprovalAnswer), next_cursor: NextCursor });
export type ApprovalsAnswer = v.InferOutput<typeof ApprovalsAnswer>;

/** Body of `POST /api/approvals/{approval_id}/decide`. */
export const DecideBody = v.strictObject({
  decision: Decision,
  data: v.exactOptional(
    v.pipe(
      JsonValue,
      v.check((data) => bytesOf(data) <= DECISION_BYTES_MAX, `must be at most ${DECISION_BYTES_MAX} bytes as JSON`),
      v.description("What the form asks for. A rejection may leave it out."),
    ),
  ),
  comment: v.exactOptional(
    v.pipe(
      v.string(),
      v.maxLength(APPROVAL_TEXTS_MAX.comment),
      v.check(isStorable, "must not hold U+0000 or half a character"),
    ),
  ),
});
export type DecideBody = v.InferOutput<typeof DecideBody>;

/** Longest body of a decision by a link: its data as a form writes them, with the rest. */
export const LINK_BODY_BYTES_MAX = 262_144;

/** What a link leads to, for programs. */
export const LinkAnswer = v.object({
  title: v.string(),
  description: v.exactOptional(v.string()),
  form: v.exactOptional(JsonObjectValue),
  status: v.picklist(APPROVAL_STATUSES),
  due: v.exactOptional(Timestamp),
  link: v.pipe(v.literal("open"), v.description("It can be used: once. One that cannot be used any more is 410.")),
});
export type LinkAnswer = v.InferOutput<typeof LinkAnswer>;

/** Answer of a decision by a link. */
export const LinkDecisionAnswer = v.object({ status: v.picklist(["open", "approved", "rejected"]) });

/** Answer of a decision. */
export const DecideAnswer = v.object({
  approval_id: IdText,
  execution_id: IdText,
  status: v.pipe(
    v.picklist(["open", "approved", "rejected"]),
    v.description("`open`: further persons have to decide, or its execution is paused."),
  ),
});
export type DecideAnswer = v.InferOutput<typeof DecideAnswer>;
