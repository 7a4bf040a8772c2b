import { OverrideAnswer, OverrideBody } from "../api/steering.ts";
import { contract } from "./contract.ts";

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
} as const;
