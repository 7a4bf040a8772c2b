import type { Verdict } from "../../engine/decide/policy.ts";
import type { ProgramTask } from "../../engine/program/program.ts";
import type { Secrets } from "../../engine/sealing/secrets.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { PipelineRun } from "./pipeline-run.ts";

/** The error with where it happened, as it stands in events: rules, later tasks and arcs read that too (language document, section 5.4). */
export function place(error: TaskError, run: PipelineRun, task: ProgramTask, attempt: number): TaskError {
  return { ...error, step: run.context.place.command.step, task: task.task.label, attempt };
}

/** Longest message and code that a rule may give: both are stored in events and in the execution's row. */
const MESSAGE_CHARS_MAX = 4_000;
const CODE_CHARS_MAX = 200;

/**
 * The error of a task that its rules failed: the tool's error, with the rule's message and code if it has them. Secrets are
 * hidden before the text is cut: the start of a secret that was cut in two would not be found.
 */
export function failureOf(
  verdict: Verdict,
  error: TaskError | undefined,
  task: ProgramTask,
  { hide }: Secrets,
): TaskError {
  const base = error ?? policyError(task);
  if (verdict.do !== "fail") return base;
  const { message, code } = verdict;
  return {
    ...base,
    ...(code !== undefined && { code: hide(code).slice(0, CODE_CHARS_MAX) }),
    ...(message !== undefined && { message: hide(message).slice(0, MESSAGE_CHARS_MAX) }),
  };
}

function policyError(task: ProgramTask): TaskError {
  const message = `A policy rule failed task '${task.task.label}' although its tool had succeeded`;
  return { kind: "policy", code: "POLICY", message, retryable: false };
}

/** A jump or a retry that never ends. */
export function tooManyRuns(run: PipelineRun, task: ProgramTask, runsMax: number): TaskError {
  const message = `Task '${task.task.label}' was about to make run ${runsMax + 1} of this pipeline; a jump or retry never ends`;
  return place({ kind: "policy", code: "TASK_RUNS_MAX", message, retryable: false }, run, task, 1);
}
