import type { ProgramStep } from "../../engine/program/program.ts";
import type { CommandRef } from "../../schema/words/event.ts";
import type { Report } from "../deps.ts";
import type { TaskSurroundings } from "./command-context.ts";
import type { PipelineState } from "./scope.ts";

/** What a pipeline runs in. */
export interface PipelineRun {
  around: TaskSurroundings;
  step: ProgramStep;
  state: PipelineState;
  /** Names the command (and iteration) in events. */
  ref: CommandRef & { iteration?: number };
  report: Report;
  signal: AbortSignal;
}
