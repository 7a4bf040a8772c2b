import type { Json, JsonObject } from "./json.ts";
import type { TaskError } from "./outcome.ts";

/*
 * Waits for people (control, section 2 and rules 27 to 32): what is asked, who may say, and what they have said.
 */

/** People by the names of their roles and by their e-mail addresses. */
export interface People {
  roles?: string[];
  users?: string[];
}

/** What people are asked for. */
export interface ApprovalRequest {
  kind: "approval";
  title: string;
  /** Text or Markdown. */
  description?: string;
  /** JSON Schema of what they give with their decision. */
  form?: JsonObject;
  /** Absent: users who may execute the playbook. `not_starter`: not who has started it. */
  approvers?: People & { not_starter?: true };
  /** How many must approve. */
  required: number;
  /** With so many rejections it is rejected. */
  rejections: number;
  /** Milliseconds between two reminders. */
  remind_ms?: number;
  /** Who may decide too, so many milliseconds after it was opened. */
  escalate?: { after_ms: number; to: People };
  /** Who decides by a link has to be logged in. */
  link_login?: true;
}

/** What one person has said. */
export interface ApprovalDecision {
  decision: "approve" | "reject";
  /** The person, as the audit log names them; `link`: a caller with a link; {@link LINK_OF} and an address: one with the link of that addressee. */
  by: string;
  /** RFC 3339. */
  at: string;
  data?: Json;
  comment?: string;
  /** The message whose link was used, by its number. */
  link?: number;
}

/** How an approval ends. */
export type ApprovalOutcome = "approved" | "rejected" | "expired" | "cancelled";
/** What an approval is. */
export type ApprovalStatus = "open" | ApprovalOutcome;

/** An approval that a parked command waits for. */
export interface OpenApproval {
  id: string;
  decisions: ApprovalDecision[];
  /** People have decided; the command goes on. */
  outcome?: "approved" | "rejected";
  /** Messages that were made about it. */
  messages: number;
  /** Reminders that have come due. */
  reminders: number;
  escalated?: true;
  /** When the next reminder or the escalation is due, milliseconds since 1970; absent: never. */
  next?: number;
}

/** Why a message about an approval is sent. */
export type MessageReason = "opened" | "reminder" | "escalation";

/** Which approval an event is about. */
interface ApprovalRef {
  approval_id: string;
  command_id: string;
  step: string;
  /** Absent outside loops. */
  iteration?: number;
}

/** The events of approvals. What is asked stands in `command.parked`. */
export interface ApprovalEvents {
  "approval.opened": ApprovalRef;
  "approval.decided": ApprovalRef & Omit<ApprovalDecision, "at">;
  "approval.reminded": ApprovalRef;
  /** From now on `to` may decide too. */
  "approval.escalated": ApprovalRef & { to: People };
  /**
   * A playbook is to be run that tells people; or its input could not be made. {@link messageLink} stands where the link is to be: the log
   * has none that could be used.
   */
  "approval.notified": ApprovalRef & {
    number: number;
    reason: MessageReason;
    /** The addressee, who alone has its link; absent: everybody who gets it. */
    to?: string;
    playbook?: string;
    input?: JsonObject;
    error?: TaskError;
  };
  "approval.closed": ApprovalRef & { outcome: ApprovalOutcome };
}

/** What stands for the link of a message until that is sent. */
export function messageLink(approvalId: string, number: number): string {
  return `approval-link-${approvalId}-${number}`;
}

/** What stands before an addressee whose link was used: that it was they is what the link says, and no login. */
export const LINK_OF = "link:";
/** Most addressees of a message. */
export const ADDRESSEES_MAX = 20;
/** Most characters of one. */
export const ADDRESSEE_CHARS_MAX = 254;
/** Most persons that an approval may need, and most rejections: their decisions are part of the state. */
export const PERSONS_MAX = 20;
/** Most bytes of the data of a decision, as JSON. */
export const DECISION_BYTES_MAX = 65_536;
/** Most characters of a title, of a description and of a comment. */
export const APPROVAL_TEXTS_MAX = { title: 256, description: 16_384, comment: 2_000 } as const;
