import { DOCTOR_ADMIN_ROUTES } from "../../schema/routes/doctor.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { createDiagnosis } from "../../services/diagnosis/diagnose.ts";
import type { createOverview } from "../../services/overview/overview.ts";
import type { Reaper } from "../../services/workers/reaper.ts";
import { callerOf } from "../http/audit-caller.ts";
import { serve } from "../http/serve.ts";

/** What the routes need. */
export interface DoctorAdminDeps {
  reaper: Pick<Reaper, "sweepNow">;
  diagnose: ReturnType<typeof createDiagnosis>;
  overview: ReturnType<typeof createOverview>;
  audit: Pick<Audit, "record">;
}

/** What the doctor asks of a server. */
export function doctorAdminRoutes({ reaper, diagnose, overview, audit }: DoctorAdminDeps) {
  return serve(DOCTOR_ADMIN_ROUTES, {
    sweep: async ({ json }, c) => {
      const { republished, more } = await reaper.sweepNow();
      const total = republished.pending + republished.worker + republished.timeout;
      const { action, resource } = DOCTOR_ADMIN_ROUTES.sweep.audit;
      await audit.record(
        audited(callerOf(c, DOCTOR_ADMIN_ROUTES.sweep), action, resource, { detail: { ...republished } }),
      );
      return json({ status: "ok", republished, total, more });
    },
    overview: async ({ json }) => json(await overview()),
    diagnosis: async ({ query: { stale_seconds: seconds }, json }) => {
      return json(await diagnose(seconds === undefined ? {} : { staleMs: Number(seconds) * 1_000 }));
    },
  });
}
