import { Diagnosis, DiagnosisQuery, SweepAnswer } from "../api/doctor.ts";
import { Overview } from "../api/overview.ts";
import { contract } from "./contract.ts";

/** What the doctor asks of a server. */
export const DOCTOR_ADMIN_ROUTES = {
  sweep: contract({
    method: "post",
    path: "/api/admin/command_reaper/sweep",
    summary: "Publishes the notification of stranded commands again, now; changes no status",
    access: "operator",
    // It starts nothing twice and ends nothing: a caller who may see stalled work may have it published again.
    user: { permission: "view_operations" },
    answer: SweepAnswer,
    audit: { action: "command_reaper.sweep", resource: "command_reaper" },
  }),
  diagnosis: contract({
    method: "get",
    path: "/api/admin/diagnosis",
    summary: "What is wrong with executions, workers, queues and the database, since when, and what to do",
    access: "operator",
    user: { permission: "view_operations" },
    query: DiagnosisQuery,
    answer: Diagnosis,
    refusals: [422],
  }),
  overview: contract({
    method: "get",
    path: "/api/admin/overview",
    summary:
      "Why is nothing running: workers and what they run, the queue, batches, the reaper, the database, the broker",
    access: "operator",
    user: { permission: "view_operations" },
    answer: Overview,
  }),
} as const;
