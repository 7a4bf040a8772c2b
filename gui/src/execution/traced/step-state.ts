import type { ExecutionAnswer as Execution, StepAnswer as Step } from "../../../../src/schema/api/executions.ts";
import { countText } from "./count-text.ts";
import type { CommandTrace } from "./step-traces.ts";

/**
 * The state of a step as a person would name it: beside the API's states `UNREACHED` where the execution ended first, `REUSED`
 * where a rerun kept its result, `QUEUED` where no worker has it, `RETRYING` between two attempts.
 */
export function stepState(execution: Execution, step: Step): string {
  if (step.reused_from !== undefined) return "REUSED";
  const isOver = execution.ended_at !== null;
  if (step.status === "PENDING") return isOver ? "UNREACHED" : "PENDING";
  const isOpen = step.status === "RUNNING" || step.status === "WAITING";
  // A retry that is far away is parked, as a wait is.
  if (isOpen && !isOver && execution.next_retry?.step === step.name) return "RETRYING";
  if (step.status !== "RUNNING" || isOver) return step.status;
  const open = (execution.commands ?? []).filter((command) => command.step === step.name);
  return open.length > 0 && open.every(isQueued) ? "QUEUED" : "RUNNING";
}

/** No worker has it, though it could be run. */
export function isQueued({ worker, status }: NonNullable<Execution["commands"]>[number]): boolean {
  return worker === null && status !== "WAITING";
}

/** What stands beside the name of a step: how far it is, what it called, why it did not run. */
export function stepNote(
  execution: Execution,
  step: Step,
  commands: readonly CommandTrace[],
  called: Pick<Execution, "path" | "version"> | undefined,
): string {
  const state = stepState(execution, step);
  if (step.reused_from !== undefined) return `reused from ${step.reused_from.execution_id}`;
  if (state === "UNREACHED") return "not reached";
  const parts: string[] = [];
  if (step.overridden !== undefined)
    parts.push(`${BY_HAND[step.overridden.action]} by ${step.overridden.by ?? "hand"}`);
  else if (state === "SKIPPED") parts.push("skipped");
  if (called !== undefined) parts.push(`${called.path} v${called.version}`);
  if (step.loop !== undefined) parts.push(loopText(step.loop, step.ended_at !== null));
  if (step.runs > 1) parts.push(`${step.runs} runs`);
  const attempts = Math.max(step.attempts, ...commands.flatMap(({ tasks }) => tasks.map(({ run }) => run)));
  if (step.loop === undefined && attempts > 1) parts.push(`attempt ${attempts}`);
  const wait = (execution.waiting_for ?? []).find((each) => each.step === step.name && each.kind !== "retry");
  if (state === "WAITING" && wait !== undefined) parts.push(waitText(wait.kind, wait.name));
  if (state === "QUEUED") parts.push(execution.status === "PAUSED" ? "paused" : "waits for a worker");
  if (state === "RETRYING") parts.push("waits to retry");
  return parts.join(" · ");
}

const BY_HAND = { skip: "skipped", complete: "completed", fail: "failed" } as const;

function waitText(kind: string, name: string | undefined): string {
  if (kind === "signal") return `waits for signal ${name}`;
  return kind === "timer" ? "waits for its time" : "waits for approval";
}

/** `240 items`, `36 of 240 items`, `240 items, 4 failed`. */
export function loopText({ total, done, failed }: NonNullable<Step["loop"]>, isOver: boolean): string {
  const items = total === 1 ? "item" : "items";
  const isWhole = total !== null && (isOver ? done === total : false);
  const text = isWhole
    ? `${countText(total)} ${items}`
    : `${countText(done)} of ${total === null ? "?" : countText(total)} ${items}`;
  return failed > 0 ? `${text}, ${countText(failed)} failed` : text;
}
