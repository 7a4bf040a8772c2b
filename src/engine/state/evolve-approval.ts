import type { OpenApproval } from "../../schema/words/approval.ts";
import { defined } from "../../schema/words/defined.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { type ExecutionState, openCommand, type Parked } from "./state.ts";

/** An event about an approval. */
export type ApprovalEvent = Extract<FlowEvent, { approval_id: string }>;

/** The part of `evolve` that concerns approvals. What comes of one that is over, or of another one, changes nothing. */
export function evolveApproval(state: ExecutionState, event: ApprovalEvent): ExecutionState {
  const parked = openCommand(state, event.command_id)?.parked;
  if (parked?.wait.kind !== "approval") return state;
  if (event.type === "approval.opened") {
    parked.approval = { id: event.approval_id, decisions: [], messages: 0, reminders: 0 };
    noteNext(parked, parked.approval, event.at);
  }
  const { approval } = parked;
  if (approval?.id === event.approval_id) evolveOpen(parked, approval, event);
  return state;
}

function evolveOpen(parked: Parked, approval: OpenApproval, event: ApprovalEvent): void {
  switch (event.type) {
    case "approval.decided": {
      const { decision, by, at, data, comment, link } = event;
      approval.decisions.push({ decision, by, at: new Date(at).toISOString(), ...defined({ data, comment, link }) });
      return;
    }
    case "approval.reminded":
      approval.reminders += 1;
      noteNext(parked, approval, event.at);
      return;
    case "approval.escalated":
      approval.escalated = true;
      noteNext(parked, approval, event.at);
      return;
    case "approval.notified":
      approval.messages = event.number;
      return;
    case "approval.closed":
      if (event.outcome === "approved" || event.outcome === "rejected") approval.outcome = event.outcome;
      delete approval.next;
      return;
    case "approval.opened":
      return;
  }
}

/** Reminders keep their distance from the opening: those that were missed are one. */
function noteNext({ wait, since }: Parked, approval: OpenApproval, now: number): void {
  if (wait.kind !== "approval") return;
  const { remind_ms: every, escalate } = wait;
  const reminder = every === undefined ? [] : [since + (Math.floor((now - since) / every) + 1) * every];
  const escalation = escalate === undefined || approval.escalated === true ? [] : [since + escalate.after_ms];
  const times = [...reminder, ...escalation];
  if (times.length > 0) approval.next = Math.min(...times);
  else delete approval.next;
}

/** When something about a parked command is to be done by itself, milliseconds since 1970; undefined: never. */
export function nextDueOf({ wake_at: wakeAt, approval }: Pick<Parked, "wake_at" | "approval">): number | undefined {
  const due = Math.min(
    wakeAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(wakeAt),
    approval?.next ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(due) ? due : undefined;
}
