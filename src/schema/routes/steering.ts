import {
  BulkAnswer,
  BulkBody,
  BulkStartAnswer,
  EveryonesSignalBody,
  OverrideAnswer,
  OverrideBody,
  SignalAnswer,
  SignalBody,
} from "../api/steering.ts";
import {
  ApprovalAnswer,
  ApprovalsAnswer,
  ApprovalsQuery,
  DecideAnswer,
  DecideBody,
  LinkDecisionAnswer,
} from "../api/waits/approvals.ts";
import { contract } from "./contract.ts";

/** Approvals for which executions wait (control, section 2). */
export const APPROVAL_ROUTES = {
  list: contract({
    method: "get",
    path: "/api/approvals",
    summary:
      "Approvals, newest first: those that the caller may decide, and those of playbooks that they may view; with `mine` only those that wait for the caller",
    access: "operator",
    user: { action: "execute", of: "list" },
    query: ApprovalsQuery,
    answer: ApprovalsAnswer,
    refusals: [422],
  }),
  detail: contract({
    method: "get",
    path: "/api/approvals/:approval_id",
    summary:
      "One approval: what is asked, who may decide, and what they have said. For approvers, and for who may view the playbook",
    access: "operator",
    user: "session",
    audit: { action: "approval.view", resource: "approval/:approval_id" },
    answer: ApprovalAnswer,
    refusals: [404],
  }),
  decide: contract({
    method: "post",
    path: "/api/approvals/:approval_id/decide",
    summary: "Approves or rejects, once for each person; the step goes on when enough have decided",
    access: "operator",
    user: "session",
    audit: { action: "approval.decide", resource: "approval/:approval_id" },
    body: DecideBody,
    answer: DecideAnswer,
    refusals: [404, 409, 413, 422],
  }),
} as const;

/** The links of messages about approvals (control, rule 30): who has one needs no token. */
export const APPROVAL_LINK_ROUTES = {
  look: contract({
    method: "get",
    path: "/approve/:token",
    summary:
      "The page of a link: what is asked, and a form. It uses nothing up. With Accept: application/json the same for programs",
    access: "anonymous",
    contentType: "text/html; charset=utf-8",
    refusals: [401, 404, 410, 429],
  }),
  decide: contract({
    method: "post",
    path: "/approve/:token",
    summary: "Decides by a link, once; the body is that of its page's form, or JSON",
    access: "anonymous",
    bodyLimit: "link",
    body: DecideBody,
    answer: LinkDecisionAnswer,
    refusals: [401, 404, 409, 410, 413, 422, 429],
  }),
} as const;

/** Steering executions beyond pause and resume (control, section 1). */
export const STEERING_ROUTES = {
  override: contract({
    method: "post",
    path: "/api/executions/:execution_id/steps/:step/override",
    summary:
      "Ends a step, or an iteration of its loop, as a person says: its commands are cancelled, and its arcs follow; one not begun ends so when it is reached",
    access: "operator",
    user: { action: "execute", of: "execution" },
    audit: { action: "execution.override", resource: "execution/:execution_id" },
    body: OverrideBody,
    answer: OverrideAnswer,
    status: 202,
    refusals: [404, 409, 413, 422],
  }),
  signal: contract({
    method: "post",
    path: "/api/executions/:execution_id/signals/:name",
    summary:
      "Sends a signal to an execution: the step that has waited longest for it goes on with its data; before one waits, it is kept. With an id it counts once, however often it is sent",
    access: "operator",
    user: { action: "execute", of: "execution" },
    audit: { action: "execution.signal", resource: "execution/:execution_id" },
    body: SignalBody,
    answer: SignalAnswer,
    status: 202,
    refusals: [404, 409, 413, 422, 429],
  }),
  signalAll: contract({
    method: "post",
    path: "/api/signals/:name",
    summary:
      "Sends a signal to all executions that wait for its name and key and that the caller may execute. If none does, it is kept for a while for the first that will. With an id it counts once, however often it is sent",
    access: "operator",
    user: { action: "execute", of: "list" },
    audit: { action: "signal.send", resource: "signal/:name" },
    body: EveryonesSignalBody,
    answer: SignalAnswer,
    status: 202,
    refusals: [413, 422, 429],
  }),
  bulk: contract({
    method: "post",
    path: "/api/executions/bulk",
    summary:
      "Cancels, pauses, resumes or repeats all executions that a filter means now, in the background; or with dry_run says how many these are. With an Idempotency-Key it begins one operation, however often it is sent",
    access: "operator",
    user: { action: "execute", of: "list" },
    audit: { action: "execution.bulk", resource: "execution" },
    body: BulkBody,
    answer: BulkStartAnswer,
    status: 202,
    refusals: [413, 422],
  }),
  bulkStatus: contract({
    method: "get",
    path: "/api/executions/bulk/:bulk_id",
    summary: "How far an operation on many executions is, what failed and what it has started; users see their own",
    access: "operator",
    user: "session",
    answer: BulkAnswer,
    refusals: [404, 422],
  }),
  bulkCancel: bulkChange("cancel", "Cancels it: executions it has not reached stay as they are"),
  bulkPause: bulkChange("pause", "It starts nothing further"),
  bulkResume: bulkChange("resume", "It goes on"),
} as const;

/** A route that changes an operation on many executions. */
function bulkChange<const W extends "cancel" | "pause" | "resume">(what: W, summary: string) {
  return contract({
    method: "post",
    path: `/api/executions/bulk/:bulk_id/${what}` as const,
    summary,
    access: "operator",
    user: "session",
    audit: { action: `execution.bulk_${what}`, resource: "bulk/:bulk_id" },
    answer: BulkAnswer,
    refusals: [404, 409, 422],
  });
}
