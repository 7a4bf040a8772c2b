import { formProblem } from "../../schema/rules/clean-json-schema.ts";
import { durationMs } from "../../schema/rules/durations.ts";
import { APPROVAL_TEXTS_MAX, type ApprovalRequest, PERSONS_MAX, type People } from "../../schema/words/approval.ts";
import type { Woken } from "../../schema/words/command.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../schema/words/json.ts";

/** What people are asked for, as its templates give it. Throws `FlowError` INVALID_INPUT for what cannot be asked. */
export function approvalOf(config: JsonObject): ApprovalRequest {
  const { approval } = config;
  if (!isJsonObject(approval)) throw wrong("", "be a map with a `title`");
  const { title, description, form, approvers, required, rejections, remind_every, escalate } = approval;
  const remindMs = duration(remind_every, "remind_every");
  if (remindMs === 0) throw wrong("remind_every", "be more than 0");
  const problem = form == null ? undefined : formProblem(form);
  if (problem !== undefined) throw new FlowError("INVALID_INPUT", `The form of an approval ${problem}`);
  return {
    kind: "approval",
    title: textOf(title ?? "", "title", APPROVAL_TEXTS_MAX.title),
    ...(description != null &&
      description !== "" && { description: textOf(description, "description", APPROVAL_TEXTS_MAX.description) }),
    ...(isJsonObject(form) && { form }),
    ...(approvers != null && { approvers: approversOf(approvers) }),
    required: persons(required, "required"),
    rejections: persons(rejections, "rejections"),
    ...defined({ remind_ms: remindMs, escalate: escalate == null ? undefined : escalationOf(escalate) }),
    ...(approval["link_login"] === true && { link_login: true }),
  };
}

/** What a task that waited for people gives: how it ended, and what each of them has said. */
export function approvalResult({
  approval,
}: Woken): { outcome: "approved" | "rejected"; rest: JsonObject } | undefined {
  const { outcome, decisions = [] } = approval ?? {};
  if (outcome === undefined) return undefined;
  const last = decisions.findLast(({ decision }) => (decision === "approve") === (outcome === "approved"));
  const approvals = decisions.map(({ decision, by, at, data, comment }) => ({
    ...{ decision, by, at },
    ...defined({ data, comment }),
  }));
  return { outcome, rest: { ...defined({ by: last?.by, data: last?.data }), approvals } };
}

function approversOf(value: Json): NonNullable<ApprovalRequest["approvers"]> {
  const people = peopleOf(value, "approvers");
  return { ...people, ...(isJsonObject(value) && value["not_starter"] === true && { not_starter: true }) };
}

function escalationOf(value: Json): NonNullable<ApprovalRequest["escalate"]> {
  const { after, to } = isJsonObject(value) ? value : {};
  const afterMs = duration(after, "escalate.after");
  const people = to == null ? {} : peopleOf(to, "escalate.to");
  if (afterMs === undefined || Object.keys(people).length === 0)
    throw wrong("escalate", "say `after` which time it is put before whom: `to: {roles, users}`");
  return { after_ms: afterMs, to: people };
}

function peopleOf(value: Json, name: string): People {
  if (!isJsonObject(value)) throw wrong(name, "be a map of `roles` and `users`");
  const [roles, users] = ["roles", "users"].map((key) => namesOf(value[key], `${name}.${key}`));
  return defined({ roles, users: users?.map((user) => user.toLowerCase()) });
}

/** Most names of one list. */
const NAMES_MAX = 100;

function namesOf(value: Json | undefined, name: string): string[] | undefined {
  const names = typeof value === "string" ? [value] : (value ?? []);
  const isList = Array.isArray(names) && names.length <= NAMES_MAX;
  if (!isList || !names.every((one) => typeof one === "string" && one.trim() !== "" && one.length <= 320))
    throw wrong(name, `be a list of names, at most ${NAMES_MAX}`);
  return names.length === 0 ? undefined : names.map((one) => String(one).trim());
}

function textOf(value: Json, name: string, max: number): string {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text !== "string" || text.trim() === "" || text.length > max)
    throw wrong(name, `be a text of at most ${max} characters`);
  // A text column holds no U+0000.
  return text.replaceAll("\u0000", "");
}

function persons(value: Json | undefined, name: string): number {
  const count = typeof value === "string" ? Number(value) : (value ?? 1);
  if (typeof count === "number" && Number.isInteger(count) && count >= 1 && count <= PERSONS_MAX) return count;
  throw wrong(name, `be a number from 1 to ${PERSONS_MAX}`);
}

function duration(value: Json | undefined, name: string): number | undefined {
  if (value == null) return undefined;
  const ms = durationMs(value);
  if (ms === undefined) throw wrong(name, "be a duration such as 30s, 1h30m, 2d or seconds");
  return ms;
}

function wrong(name: string, what: string): FlowError {
  const where = name === "" ? "`approval`" : `\`approval.${name}\``;
  return new FlowError("INVALID_INPUT", `${where} of a wait must ${what}`);
}
