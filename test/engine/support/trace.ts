import type { Fired, FlowEvent } from "../../../src/schema/words/event.ts";

/**
 * Events as lines that a person can compare, in order: `step.completed a -> b`, `command.issued each[0]`,
 * `step.skipped b (unreached)`. `next.evaluated` explains and decides nothing, so it is left out.
 */
export function trace(events: readonly FlowEvent[]): string[] {
  return events.filter((event) => event.type !== "next.evaluated").map(line);
}

function line(event: FlowEvent): string {
  switch (event.type) {
    case "command.issued": {
      const { iterations, claim } = event;
      if (claim === true) return `${event.type} ${event.step} claim`;
      if (iterations === undefined) return `${event.type} ${event.step}`;
      const { from, to } = iterations;
      return `${event.type} ${event.step}[${to - from === 1 ? from : `${from}..${to - 1}`}]`;
    }
    case "loop.started": {
      const total = event.items?.length ?? event.count;
      return `${event.type} ${event.step}${total === undefined ? "" : ` ${total}`}`;
    }
    case "loop.done":
      return `${event.type} ${event.step} ${event.stats.success}/${event.stats.total}`;
    case "step.completed":
      return `${event.type} ${event.step}${arrow(event.next)}`;
    case "step.failed":
      return `${event.type} ${event.step} (${event.handled})${arrow(event.next)}`;
    case "step.skipped":
      return `${event.type} ${event.step} (${event.reason})${arrow(event.next)}`;
    case "playbook.completed":
      return `${event.type} ${event.result_step ?? "without result"}`;
    case "playbook.failed":
    case "workflow.failed":
      return `${event.type} ${event.error.kind}`;
    default:
      return "step" in event ? `${event.type} ${event.step}` : event.type;
  }
}

function arrow(next: readonly Fired[]): string {
  return next.length === 0 ? "" : ` -> ${next.map(({ step }) => step).join(", ")}`;
}
