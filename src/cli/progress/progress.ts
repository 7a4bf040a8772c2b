import type { FlowEvent } from "../../schema/words/event.ts";
import type { TaskLine } from "../../worker/deps.ts";
import { cleanText } from "../terminal/text.ts";
import type { ExecutionRow, RunModel } from "./run-model.ts";

/** How a run is shown while it goes on: as a tree, as lines, or not at all. */
export interface Progress {
  /** Called for every event, after the model took it in. Costs the same however long the run is. */
  observe(execution: ExecutionRow, events: readonly FlowEvent[]): void;
  /** A line that a tool wrote. */
  log(line: TaskLine): void;
  /** Something that is about the run as a whole. */
  notice(text: string): void;
  /** The run was asked to stop; its tools are being stopped. */
  cancelling(): void;
  /** Leaves the terminal as it was found, with the last state of everything on it. Safe to call twice. */
  stop(): void;
}

/** `--quiet`. */
export const NO_PROGRESS: Progress = {
  observe: () => undefined,
  log: () => undefined,
  notice: () => undefined,
  cancelling: () => undefined,
  stop: () => undefined,
};

/** The way from the run to an execution, to stand before the names of its steps: `call › `, `many[3] › `. */
export function placeOf(execution: ExecutionRow | undefined): string {
  if (execution?.caller === undefined) return "";
  const { caller, iteration } = execution;
  const index = iteration === undefined ? "" : `[${iteration}]`;
  return `${placeOf(caller.execution)}${cleanText(caller.name)}${index} › `;
}

/** `step │ text`, the step with the way to it. */
export function logLine(model: RunModel, line: TaskLine): string {
  const index = line.iteration === undefined ? "" : `[${line.iteration}]`;
  return `${placeOf(model.execution(line.executionId))}${cleanText(line.step)}${index} │ ${cleanText(line.text)}`;
}
