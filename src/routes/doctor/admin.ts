import { Hono } from "hono";
import { Diagnosis, DiagnosisQuery, SweepAnswer } from "../../schema/api/doctor.ts";
import { Overview } from "../../schema/api/overview.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { createDiagnosis } from "../../services/diagnosis/diagnose.ts";
import type { createOverview } from "../../services/overview/overview.ts";
import type { Reaper } from "../../services/workers/reaper.ts";
import { callerOf } from "../http/audit-caller.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { queryOf } from "../http/validate.ts";

const SWEEP = contract({
  method: "post",
  path: "/api/admin/command_reaper/sweep",
  summary: "Publishes the notification of stranded commands again, now; changes no status",
  access: "operator",
  // It starts nothing twice and ends nothing: a caller who may see stalled work may have it announced again.
  user: { permission: "view_operations" },
  answer: SweepAnswer,
  audit: { action: "command_reaper.sweep", resource: "command_reaper" },
});

const DIAGNOSIS = contract({
  method: "get",
  path: "/api/admin/diagnosis",
  summary: "What is wrong with executions, workers, queues and the database, since when, and what to do",
  access: "operator",
  user: { permission: "view_operations" },
  query: DiagnosisQuery,
  answer: Diagnosis,
  refusals: [422],
});

const OVERVIEW = contract({
  method: "get",
  path: "/api/admin/overview",
  summary:
    "Why is nothing running: workers and what they run, the queue, batches, the reaper, the database, the broker",
  access: "operator",
  user: { permission: "view_operations" },
  answer: Overview,
});

/** Contracts of {@link doctorAdminRoutes}. */
export const DOCTOR_ADMIN_CONTRACTS = [SWEEP, DIAGNOSIS, OVERVIEW];

/** What the routes need. */
export interface DoctorAdminDeps {
  reaper: Pick<Reaper, "sweepNow">;
  diagnose: ReturnType<typeof createDiagnosis>;
  overview: ReturnType<typeof createOverview>;
  audit: Pick<Audit, "record">;
}

/** What the doctor asks of a server. */
export function doctorAdminRoutes({ reaper, diagnose, overview, audit }: DoctorAdminDeps) {
  return new Hono<RouteEnvironment>()
    .post(SWEEP.path, async (c) => {
      const { republished, more } = await reaper.sweepNow();
      const total = republished.pending + republished.worker + republished.timeout;
      const { action, resource } = SWEEP.audit;
      await audit.record(audited(callerOf(c, SWEEP), action, resource, { detail: { ...republished } }));
      return c.json({ status: "ok", republished, total, more } satisfies SweepAnswer);
    })
    .get(OVERVIEW.path, async (c) => c.json(await overview()))
    .get(DIAGNOSIS.path, queryOf(DIAGNOSIS.query), async (c) => {
      const { stale_seconds: seconds } = c.req.valid("query");
      return c.json(await diagnose(seconds === undefined ? {} : { staleMs: Number(seconds) * 1_000 }));
    });
}
