import { type ApprovalEvent, nextDueOf } from "../../../engine/state/evolve-approval.ts";
import { type ExecutionState, openCommand, type Parked } from "../../../engine/state/state.ts";
import type {
  ApprovalChange,
  ApprovalMessage,
  ExecutionChange,
  ParkedCommand,
} from "../../../ports/execution-store.ts";
import type { ParkedWork } from "../../../schema/words/command.ts";
import { defined } from "../../../schema/words/defined.ts";
import type { EventOf } from "../../../schema/words/event.ts";

/** What of a parked command its row is made from. */
export type WaitingWork = Pick<Parked, "wait" | "wake_at" | "approval">;

/** The rows of what the commands of one execution wait for, as a round changes them. */
export interface WaitRows {
  /** Null: it waits no longer. */
  set(commandId: string, work: WaitingWork | null): void;
  rows(): Pick<ExecutionChange, "parked" | "unparked">;
  /** When something may first be done for one of them, milliseconds since 1970: a signal may have been kept for it. */
  soonest(): number | undefined;
}

/** No row is changed. */
export function createWaitRows(): WaitRows {
  const waits = new Map<string, ParkedCommand | null>();
  return {
    set: (id, work) => void waits.set(id, work && waitRow(id, work)),
    rows: () =>
      waits.size === 0
        ? {}
        : {
            parked: [...waits.values()].filter((wait) => wait !== null),
            unparked: [...waits].flatMap(([id, wait]) => (wait === null ? [id] : [])),
          },
    soonest() {
      let soonest: number | undefined;
      for (const wait of waits.values()) {
        const at = wait?.signal !== undefined ? 0 : (wait?.dueAt ?? Number.POSITIVE_INFINITY);
        if (wait !== null && (soonest === undefined || at < soonest)) soonest = at;
      }
      return soonest;
    },
  };
}

/** The row of a command that waits: with the time of whatever is to be done next about it by itself. */
function waitRow(commandId: string, parked: WaitingWork): ParkedCommand {
  const { wait } = parked;
  const signal = wait.kind === "signal" ? { signal: { name: wait.name, key: wait.key ?? "" } } : {};
  return { commandId, kind: wait.kind, dueAt: nextDueOf(parked) ?? null, ...signal };
}

/** A timer that comes due during a pause counts at the resumption: until then no sweep looks at it. Signals to everyone reach the execution. */
export function whilePaused({ wake_at: _, ...work }: ParkedWork): ParkedWork | null {
  return work.wait.kind === "signal" ? work : null;
}

/** The rows of an execution's approvals that a round adds or changes. */
export interface ApprovalRows {
  /** Notes what an event changes; the state contains it. */
  note(event: ApprovalEvent, state: ExecutionState): void;
  rows(): Pick<ExecutionChange, "approvals" | "messages">;
}

/** Notes what an event changes; opens the list with the first, as most rounds have no approvals. The state contains the event. */
export function noteApproval(event: ApprovalEvent, state: ExecutionState, rows = createApprovalRows()): ApprovalRows {
  rows.note(event, state);
  return rows;
}

function createApprovalRows(): ApprovalRows {
  let changes: Map<string, ApprovalChange> | undefined;
  let messages: ApprovalMessage[] | undefined;
  const changeOf = (approvalId: string): ApprovalChange => {
    changes ??= new Map();
    const known = changes.get(approvalId);
    if (known !== undefined) return known;
    const fresh: ApprovalChange = { approvalId, decisions: [] };
    changes.set(approvalId, fresh);
    return fresh;
  };
  return {
    note(event, state) {
      if (event.type === "approval.reminded") return;
      if (event.type === "approval.notified") {
        const { approval_id: approvalId, number, to, playbook, input = {} } = event;
        messages ??= [];
        if (playbook !== undefined) messages.push({ approvalId, number, ...defined({ to }), playbook, input });
        return;
      }
      const change = changeOf(event.approval_id);
      if (event.type === "approval.opened") noteOpened(change, event, state);
      else if (event.type === "approval.escalated") change.escalatedTo = event.to;
      else if (event.type === "approval.closed") change.outcome = event.outcome;
      else {
        const { decision, by, at, data, comment, link } = event;
        change.decisions.push({ decision, by, at: new Date(at).toISOString(), ...defined({ data, comment, link }) });
      }
    },
    rows: () => ({ ...(changes && { approvals: [...changes.values()] }), ...defined({ messages }) }),
  };
}

/** One that is closed in the round in which it was opened has no row: its command waits no more. */
function noteOpened(change: ApprovalChange, event: EventOf<"approval.opened">, state: ExecutionState): void {
  const { command_id: commandId, step, iteration } = event;
  const parked = openCommand(state, commandId)?.parked;
  if (parked?.wait.kind !== "approval" || parked.approval?.id !== event.approval_id) return;
  const { wait: request, wake_at: due } = parked;
  const dueAt = due === undefined ? undefined : Date.parse(due);
  change.opened = { commandId, step, request, ...defined({ iteration, dueAt }) };
}
