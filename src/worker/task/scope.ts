import type { PipelineNames } from "../../engine/decide/task-scope.ts";
import type { Accumulation } from "./accumulate.ts";

/** Where one pipeline stands: what its tasks gave, and what they wrote. Changes as it runs. */
export interface PipelineState extends PipelineNames {
  /** How often the pipeline has come to each task, by label. */
  pages: Map<string, number>;
  /** Results of tasks that are joined over their runs, by label. */
  runs: Map<string, Accumulation>;
}
