import type { RerunAnswer, RerunBody } from "../../schema/api/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import type { Rerun, RerunRequest } from "../../services/executions/rerun-execution.ts";

/** What a rerun's body asks for. */
export type AskedRerun = Pick<
  RerunRequest,
  "from" | "only" | "edits" | "version" | "reuseIterations" | "reuseChildren" | "reason" | "dryRun"
>;

/** The request of a body, with its defaults. */
export function askedRerun(body: RerunBody): AskedRerun {
  return {
    ...defined({ from: body.from, reason: body.reason }),
    only: body.only ?? false,
    edits: { input: body.input ?? {}, variables: body.variables ?? {}, stepInput: body.step_input ?? {} },
    version: body.version ?? "same",
    reuseIterations: body.reuse_iterations ?? true,
    reuseChildren: body.reuse_children ?? {},
    dryRun: body.dry_run ?? false,
  };
}

/** A rerun of the execution `id`, for its caller. */
export function rerunAnswer(id: string, rerun: Rerun): RerunAnswer {
  const { executionId, path, version, reused, willRun, steps, warnings, duplicate } = rerun;
  return {
    ...defined({ execution_id: executionId }),
    ...{ rerun_of: id, path, version, reused, will_run: willRun },
    ...(steps !== undefined && { steps }),
    ...(warnings.length > 0 && { warnings }),
    ...(duplicate && { duplicate: true as const }),
  };
}
