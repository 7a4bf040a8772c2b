import type { PipelinePlace } from "../../engine/decide/task-scope.ts";
import type { ProgramTask } from "../../engine/program/program.ts";
import type { Secrets } from "../../engine/sealing/secrets.ts";
import type { LoadedReferences } from "../../language/template/loaded-references.ts";
import type { RenderOptions } from "../../language/template/template.ts";
import type { Wait, Woken } from "../../schema/words/command.ts";
import type { ProgressNumbers, TaskLog } from "../../schema/words/event.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { CommandProgram, WorkerDeps } from "../deps.ts";
import type { RunLog } from "../reporting/progress.ts";
import type { CommandTokens } from "../secrets/credentials.ts";

/** One run of one task. */
export interface TaskRun {
  task: ProgramTask;
  /** Run by the retry policy, from 1. */
  run: number;
  taskRunId: string;
  signal: AbortSignal;
  /** Reports how far the run is, and what it has written (`task.progress`). */
  report(progress: ProgressNumbers, log?: TaskLog): Promise<void>;
  /** What the run writes. */
  log: RunLog;
  /** Present where the run goes on after a wait. */
  woken?: Woken;
  /** Ends the work on the command until what it waits for has come. */
  park(wait: Wait): never;
  /** What arrived over the arc, until the task's own inputs are rendered: its rules and its `set` read them too. */
  input: JsonObject;
}

/** What running tasks needs: the worker's parts, the playbook, and what was loaded for this command. */
export interface CommandContext {
  deps: WorkerDeps;
  source: CommandProgram;
  place: PipelinePlace & { references: LoadedReferences };
  /** Secrets that must not leave the worker. */
  secrets: Secrets;
  /** What was sealed in a value opened: for payloads that a tool has read by itself. */
  open<T>(value: T): Promise<T>;
  /** What templates are given beside names: the time, and tokens. */
  options: RenderOptions;
  /** The tokens of credentials. */
  tokens: CommandTokens;
}

/** Where in a trace the run's own calls stand; undefined without a trace. */
export function traceparentOf({ deps, place }: CommandContext, run: TaskRun): string | undefined {
  const { trace } = place.command;
  return trace === undefined ? undefined : (deps.traceparent?.(run.taskRunId, run.run) ?? trace);
}
