import type { FlowEvent } from "../../schema/words/event.ts";

/**
 * Where in its log a step began and ended last: what a rerun leaves out begins there. Ids of events; the state has none, so this is
 * kept beside it.
 */
export interface StepMark {
  /** Its last run; null for an end without a run, such as that of a guard, and for a step that another execution ran. */
  run: string | null;
  begun: number;
  /** Null while it runs. */
  ended: number | null;
  /**
   * How: `failed`: with a failure that ended the execution; `marked`: with one of a loop, after which others ran, and the execution FAILED at
   * its end; `stopped`: cancelled before its work began. A failure that an arc took, or a guard that refused, is an end like any other.
   * `unreached`: no path led to it.
   */
  end: "done" | "unreached" | "failed" | "marked" | "stopped" | null;
}

/** Marks of steps, by name. */
export type StepMarks = Map<string, StepMark>;

/** Notes an event of the log. Called with all of them in their order, or from a state on that has its marks; null: they are not known. */
export function noteMark(marks: StepMarks | null, event: FlowEvent, eventId: number): void {
  if (marks === null) return;
  switch (event.type) {
    case "command.issued":
    case "loop.started": {
      const known = marks.get(event.step);
      if (known?.run === event.step_run_id) return;
      marks.set(event.step, { run: event.step_run_id, begun: eventId, ended: null, end: null });
      return;
    }
    case "step.completed":
    case "step.skipped":
    case "step.failed": {
      const known = marks.get(event.step);
      const isOpen = known !== undefined && known.ended === null;
      const begin = isOpen ? known : { run: null, begun: eventId };
      marks.set(event.step, { run: begin.run, begun: begin.begun, ended: eventId, end: endOf(event) });
      return;
    }
    default:
      return;
  }
}

function endOf(event: FlowEvent): StepMark["end"] {
  if (event.type === "step.failed") return FAILURES[event.handled];
  if (event.type !== "step.skipped") return "done";
  if (event.reason === "cancelled") return "stopped";
  return event.reason === "unreached" ? "unreached" : "done";
}

const FAILURES = { no: "failed", yes: "done", "loop.done": "marked" } as const;
