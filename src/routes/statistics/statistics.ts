import { STATS_ROUTES } from "../../schema/routes/system.ts";
import { isPathPattern } from "../../schema/rules/execution-filter.ts";
import { defined } from "../../schema/words/defined.ts";
import type { Statistics } from "../../services/statistics/statistics.ts";
import { serve } from "../http/serve.ts";

/** Statistics of executions that have ended. A user gets those of playbooks that they may view. */
export function statisticsRoutes(statistics: Statistics) {
  return serve(STATS_ROUTES, {
    stats: async ({ query: { path, since, until, bucket = "1h", group, sort = "failed" }, json }, c) => {
      // For a single path a user gets FORBIDDEN instead of nothing.
      const isOnePath = path !== undefined && !isPathPattern(path);
      if (isOnePath) await c.var.permit("view", path);
      const visible = isOnePath ? undefined : c.var.visible("view");
      const paths = group === undefined ? undefined : sort;
      return json(await statistics({ bucket, visible, ...defined({ path, since, until, paths }) }));
    },
  });
}
