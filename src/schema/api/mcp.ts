import * as v from "valibot";
import { ExecuteAnswer } from "./executions.ts";

/** Body of `POST /api/mcp/mcp/{resource_path}/lifecycle/{action}`: nothing is read from it. */
export const LifecycleBody = v.object({});

/** Answer to it: the execution that was started, whose `path` is that of the action's playbook. */
export const LifecycleAnswer = v.object({
  ...ExecuteAnswer.entries,
  resource: v.pipe(v.string(), v.description("Catalog path of the MCP resource.")),
  action: v.string(),
});
export type LifecycleAnswer = v.InferOutput<typeof LifecycleAnswer>;
