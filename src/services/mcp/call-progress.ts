import type { EventRecord } from "../../schema/rules/event-record.ts";
import { isJsonObject } from "../../schema/words/json.ts";

/** How far an execution is, for a waiting caller. */
export interface CallProgress {
  /** Percent, with fractions: every one is larger than the one before. */
  progress: number;
  /** What has just happened. */
  message: string;
}

/**
 * Folds an execution's events into progress. A step counts half when it starts and whole when it ends; other events, such as
 * loops back to a step, add a ten-thousandth of the rest. Most events mean nothing to a caller and return undefined.
 */
export function createCallProgress(stepsTotal: number): (event: EventRecord) => CallProgress | undefined {
  const begun = new Set<string>();
  const over = new Set<string>();
  const open = new Set<string>();
  let last = 0;
  const told = (message: string): CallProgress => {
    const share = (begun.size + over.size) / (2 * Math.max(1, stepsTotal));
    last = Math.max(BEFORE_END * Math.min(1, share), last + (100 - last) / 10_000);
    return { progress: last, message };
  };
  return (event) => {
    const { event_type: type, node_id: step, node_name: task } = event;
    switch (type) {
      case "command.claimed":
      case "command.started":
        if (open.has(step)) return undefined;
        open.add(step);
        begun.add(step);
        return told(`step '${step}' began`);
      case "task.progress":
        // The caller gets its progress, not its output.
        return numbersOf(event) === "" ? undefined : told(`step '${step}': ${task} ${numbersOf(event)}`);
      case "step.completed":
      case "step.failed":
      case "step.skipped":
        open.delete(step);
        begun.add(step);
        over.add(step);
        return told(`step '${step}' ${WORDS[type]}`);
      default:
        return undefined;
    }
  };
}

/** The answer reports the end: progress after the last step must still grow. */
const BEFORE_END = 99;

const WORDS = { "step.completed": "completed", "step.failed": "failed", "step.skipped": "was skipped" } as const;

/** `rows_read 12,000, rows_written 11,500`. */
function numbersOf({ meta }: EventRecord): string {
  const numbers = isJsonObject(meta) ? meta["progress"] : undefined;
  if (!isJsonObject(numbers)) return "";
  return Object.entries(numbers)
    .filter(([, value]) => typeof value === "number")
    .map(([name, value]) => `${name} ${Number(value).toLocaleString("en")}`)
    .join(", ");
}
