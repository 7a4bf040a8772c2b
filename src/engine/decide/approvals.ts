import { openAccount } from "../../language/expression/parsing/budget.ts";
import { ReferenceNeeded } from "../../language/views/references.ts";
import {
  ADDRESSEE_CHARS_MAX,
  ADDRESSEES_MAX,
  type ApprovalDecision,
  type ApprovalEvents,
  type ApprovalOutcome,
  LINK_OF,
  type MessageReason,
  messageLink,
  type OpenApproval,
} from "../../schema/words/approval.ts";
import type { ApprovalWait } from "../../schema/words/command.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { EventOf, FlowEvent } from "../../schema/words/event.ts";
import { isJsonObject, type Json, type JsonObject } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { isStorable } from "../../schema/words/wire.ts";
import type { EngineEnv } from "../env.ts";
import type { Program } from "../program/program.ts";
import type { ApprovalEvent } from "../state/evolve-approval.ts";
import { type ExecutionState, isTerminal, knownStep, openCommand, type Parked } from "../state/state.ts";
import { render, waitScope } from "./scope.ts";

/** What a person says about an approval. */
export type GivenDecision = Omit<ApprovalDecision, "at">;

/** Why a decision cannot be taken, as the `FlowError` to be thrown; undefined if it can. */
export function judgeDecision(
  state: ExecutionState,
  commandId: string,
  approvalId: string,
  { by, link }: GivenDecision,
): FlowError | undefined {
  const approval = isTerminal(state.status) ? undefined : openCommand(state, commandId)?.parked?.approval;
  const refused = (why: string, code: "CONFLICT" | "GONE" = "CONFLICT") =>
    new FlowError(code, `Approval ${approvalId} was not decided: ${why}`);
  // A link opens nothing after that.
  if (approval?.id !== approvalId || approval.outcome !== undefined)
    return refused("it is closed", link === undefined ? "CONFLICT" : "GONE");
  if (link !== undefined && approval.decisions.some((one) => one.link === link))
    return refused("the link was used", "GONE");
  return decidedBefore(approval.decisions, by, link) ? refused(`${nameOf(by)} has decided already`) : undefined;
}

/** Whether this person has said something before, logged in or by a link that was made for them, or this link was used. */
export function decidedBefore(decisions: readonly ApprovalDecision[], by: string, link: number | undefined): boolean {
  const person = personOf(by);
  return decisions.some((one) => personOf(one.by) === person || (link !== undefined && one.link === link));
}

/** Who is meant: an addressee is the user of that address. */
function personOf(by: string): string {
  return by.startsWith(LINK_OF) ? by.slice(LINK_OF.length) : by.toLowerCase();
}

function nameOf(by: string): string {
  return by === "link" ? "someone with a link" : by;
}

/**
 * A command that waits for people: they may decide from now on. Not where this is decided late and the wait is over: its time had come while
 * the server was gone that had accepted the event.
 */
export function openApproval(state: ExecutionState, event: EventOf<"command.parked">, env: EngineEnv): FlowEvent[] {
  const parked = openCommand(state, event.command_id)?.parked;
  if (parked?.wait.kind !== "approval" || parked.approval !== undefined) return [];
  const { command_id, step, iteration } = event;
  return [opened({ command_id, step, ...(iteration !== undefined && { iteration }) }, env)];
}

function opened(of: Omit<ApprovalEvents["approval.opened"], "approval_id">, env: EngineEnv): FlowEvent {
  return { type: "approval.opened", at: env.now, approval_id: env.newId(), ...of };
}

/** What follows from an event of an approval: a message, or its end. */
export function afterApproval(
  state: ExecutionState,
  event: ApprovalEvent,
  program: Program,
  env: EngineEnv,
): FlowEvent[] {
  const parked = openCommand(state, event.command_id)?.parked;
  const reason = REASONS[event.type];
  if (reason !== undefined) return parked === undefined ? [] : notify(state, event, parked, reason, program, env);
  return event.type === "approval.decided" ? decided(event.command_id, event.step, parked, env) : [];
}

const REASONS: Partial<Record<ApprovalEvent["type"], MessageReason>> = {
  "approval.opened": "opened",
  "approval.reminded": "reminder",
  "approval.escalated": "escalation",
};

/** Enough people have decided: the approval is closed, and its command goes on. */
function decided(commandId: string, step: string, parked: Parked | undefined, env: EngineEnv): FlowEvent[] {
  const outcome = parked === undefined ? undefined : outcomeOf(parked);
  if (parked === undefined || outcome === undefined) return [];
  return [
    ...closedApproval(commandId, step, parked, outcome, env),
    { type: "command.woken", at: env.now, command_id: commandId, step, ...defined({ approval: parked.approval?.id }) },
  ];
}

function outcomeOf({ wait, approval }: Parked): "approved" | "rejected" | undefined {
  if (wait.kind !== "approval" || approval === undefined || approval.outcome !== undefined) return undefined;
  const count = (decision: string) => approval.decisions.filter((one) => one.decision === decision).length;
  if (count("reject") >= wait.rejections) return "rejected";
  return count("approve") >= wait.required ? "approved" : undefined;
}

/** The end of the approval for which a command waits, if it does. */
export function closedApproval(
  command_id: string,
  step: string,
  { resume: { iteration }, approval }: Pick<Parked, "resume" | "approval">,
  outcome: ApprovalOutcome,
  env: EngineEnv,
): FlowEvent[] {
  if (approval === undefined || approval.outcome !== undefined) return [];
  const place = { command_id, step, ...(iteration !== undefined && { iteration }) };
  return [{ type: "approval.closed", at: env.now, approval_id: approval.id, ...place, outcome }];
}

/** Its time came before people had decided. */
export function expireApproval(
  state: ExecutionState,
  { command_id, step }: EventOf<"command.woken">,
  env: EngineEnv,
): FlowEvent[] {
  const woken = openCommand(state, command_id)?.woken;
  return woken === undefined ? [] : closedApproval(command_id, step, woken, "expired", env);
}

/** What came during a pause: of commands that were parked, and of people. */
export function approvalsAtResumption(state: ExecutionState, env: EngineEnv): FlowEvent[] {
  for (const [command_id, { step, parked }] of Object.entries(state.commands)) {
    if (parked?.wait.kind !== "approval") continue;
    const { iteration } = parked.resume;
    if (parked.approval === undefined)
      return [opened({ command_id, step, ...(iteration !== undefined && { iteration }) }, env)];
    const ends = decided(command_id, step, parked, env);
    if (ends.length > 0) return ends;
  }
  return [];
}

/** What has come due of an approval by itself: its escalation, or a reminder. */
export function dueOfApproval(
  commandId: string,
  step: string,
  { wait, resume: { iteration }, since, approval }: Parked,
  now: number,
): FlowEvent | undefined {
  if (wait.kind !== "approval" || approval?.next === undefined || approval.next > now) return undefined;
  const of = {
    at: now,
    approval_id: approval.id,
    command_id: commandId,
    step,
    ...(iteration !== undefined && { iteration }),
  };
  const { escalate } = wait;
  return escalate !== undefined && approval.escalated !== true && since + escalate.after_ms <= now
    ? { type: "approval.escalated", ...of, to: escalate.to }
    : { type: "approval.reminded", ...of };
}

/**
 * The playbook that tells people, with its input: once, or once for each addressee, who have a link of their own. One that cannot be made ends
 * nothing: the log has why.
 */
function notify(
  state: ExecutionState,
  { approval_id, command_id, step: name, iteration }: ApprovalEvent,
  parked: Parked,
  reason: MessageReason,
  program: Program,
  env: EngineEnv,
): FlowEvent[] {
  const step = program.steps.get(name);
  const run = knownStep(state, name)?.run;
  const template = step?.tasks.find(({ task }) => task.label === parked.resume.task)?.waitNotify;
  const { wait, approval } = parked;
  if (wait.kind !== "approval" || approval === undefined) return [];
  if (step === undefined || run == null || template === undefined) return [];
  const first = approval.messages + 1;
  const event: EventOf<"approval.notified"> = {
    ...{ type: "approval.notified", at: env.now, approval_id, command_id, step: name },
    ...(iteration !== undefined && { iteration }),
    ...{ number: first, reason },
  };
  const made = (number: number, to: string): JsonObject => {
    const names = { approval: messageNames(wait, approval, parked, { number, reason, to }) };
    const scope = waitScope(state, program, step, run, { iteration: parked.resume.iteration, names }, env);
    // An account of its own: a message that costs too much ends no execution.
    const value = render(template, scope, env.account === undefined ? env : { ...env, account: openAccount() });
    return isJsonObject(value) ? value : {};
  };
  try {
    const message = made(first, "");
    const addressees = addresseesOf(message["to"]);
    if (addressees === undefined) return [{ ...event, ...messageOf(message) }];
    // Who has decided is not reminded.
    const open = addressees.filter((to) => !decidedBefore(approval.decisions, to, undefined));
    return open.map((to, index) => {
      const number = first + index;
      return { ...event, number, to, ...messageOf(made(number, to)) };
    });
  } catch (error) {
    if (error instanceof ReferenceNeeded || !(error instanceof FlowError)) throw error;
    const failure: TaskError = { kind: "template", code: error.code, message: error.message, retryable: false };
    return [{ ...event, error: failure }];
  }
}

function messageOf({ playbook, input = {} }: JsonObject): { playbook: string; input: JsonObject } {
  if (typeof playbook !== "string" || playbook.trim() === "") throw wrongMessage("`playbook` must be a path");
  if (!isJsonObject(input)) throw wrongMessage("`input` must be a map");
  return { playbook, input };
}

/** Each once, in small letters: they are compared with the addresses of users. Undefined: the message is for everybody who gets it. */
function addresseesOf(to: Json | undefined): string[] | undefined {
  if (to === undefined || to === null) return undefined;
  const given = Array.isArray(to) ? to : [to];
  const names = given.map((one) => (typeof one === "string" ? one.trim().toLowerCase() : ""));
  const isRight = names.every((one) => one.includes("@") && one.length <= ADDRESSEE_CHARS_MAX && isStorable(one));
  const those = [...new Set(names)];
  if (isRight && those.length > 0 && those.length <= ADDRESSEES_MAX) return those;
  const what = `1 to ${ADDRESSEES_MAX} e-mail addresses of at most ${ADDRESSEE_CHARS_MAX} characters`;
  throw wrongMessage(`\`to\` must be ${what}`);
}

function wrongMessage(what: string): FlowError {
  return new FlowError("INVALID_INPUT", `\`notify\` of an approval: ${what}`);
}

/** `approval` in the input of a message. */
function messageNames(
  { title, description }: ApprovalWait,
  { id }: OpenApproval,
  { wake_at: due }: Parked,
  { number, reason, to }: { number: number; reason: MessageReason; to: string },
): JsonObject {
  const more = { reason, due: due ?? null, to };
  return { id, title, description: description ?? null, url: messageLink(id, number), ...more };
}
