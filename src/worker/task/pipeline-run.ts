import type { PipelineNames } from "../../engine/decide/task-scope.ts";
import type { ProgramStep } from "../../engine/program/program.ts";
import type { Woken } from "../../schema/words/command.ts";
import type { CommandRef } from "../../schema/words/event.ts";
import type { Report } from "../deps.ts";
import type { Accumulation } from "./accumulate.ts";
import type { CommandContext } from "./command-context.ts";

/** What a pipeline runs in. */
export interface PipelineRun {
  context: CommandContext;
  step: ProgramStep;
  state: PipelineState;
  /** Names the command (and iteration) in events. */
  ref: CommandRef & { iteration?: number };
  report: Report;
  signal: AbortSignal;
  /** The command may be parked until a task is to run again: it is for this pipeline alone. */
  mayPark: boolean;
  /** Present where it goes on after a wait, with the task that waited. */
  woken?: Woken;
}

/** The runs of one task between two moves of the pipeline. */
export interface RunTries {
  /** Place of this task run in the pipeline's course; retries share it, so that their idempotency key is the same. */
  serial: number;
  runs: number;
  startedAt: number;
  /** How often the pipeline has come to this task by now. */
  page: number;
  /** The next run goes on after a wait. */
  woken?: Woken;
}

/** Where one pipeline stands: what its tasks gave, and what they wrote. Changes as it runs. */
export interface PipelineState extends PipelineNames {
  /** How often the pipeline has come to each task, by label. */
  pages: Map<string, number>;
  /** Results of tasks that are joined over their runs, by label. */
  runs: Map<string, Accumulation>;
}
