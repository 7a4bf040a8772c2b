import { AuditAnswer, AuditQuery, AuditVerifyAnswer, AuditVerifyBody } from "../api/audit.ts";
import { CanAnswer, CanBody, MeAnswer } from "../api/auth.ts";
import { contract } from "./contract.ts";

/** What a caller may ask about themselves (Gateway login and sessions). */
export const AUTH_ROUTES = {
  me: contract({
    method: "get",
    path: "/api/auth/me",
    summary: "Who calls: the user of the session with what their roles give, or what the token is",
    access: "worker",
    user: "session",
    answer: MeAnswer,
  }),
  can: contract({
    method: "post",
    path: "/api/auth/can",
    summary: "Whether a user may do something with a catalog path, and which rule says so",
    access: "operator",
    user: "session",
    body: CanBody,
    answer: CanAnswer,
    refusals: [404, 413, 422],
  }),
  changes: contract({
    method: "get",
    path: "/api/auth/changes",
    summary:
      "Server-sent events `sessions`: the sessions that changed, as `tokens` (SHA-256) or `all`; for caches of sessions",
    access: "operator",
    contentType: "text/event-stream",
    refusals: [503],
  }),
} as const;

/** The audit log. */
export const AUDIT_ROUTES = {
  list: contract({
    method: "get",
    path: "/api/auth/audit",
    summary:
      "The audit log, newest first: who did what, what let or did not let them. A page may be short and not the last",
    access: "operator",
    user: { permission: "view_audit" },
    query: AuditQuery,
    answer: AuditAnswer,
    refusals: [422],
  }),
  verify: contract({
    method: "post",
    path: "/api/auth/audit/verify",
    summary:
      "Checks the hashes of the audit log, some thousand rows at a time: which rows are changed, missing or reordered",
    access: "operator",
    user: { permission: "view_audit" },
    body: AuditVerifyBody,
    bodyOptional: true,
    answer: AuditVerifyAnswer,
    refusals: [413, 422],
  }),
} as const;
