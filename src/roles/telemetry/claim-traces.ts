import {
  formatTraceparent,
  parseTraceparent,
  spanIdOf,
  type TraceContext,
} from "../../platform/telemetry/trace-context.ts";
import type { Tracing } from "../../platform/telemetry/tracing.ts";
import type { ClaimedWork } from "../../ports/work-server.ts";
import type { EventOf, FlowEvent } from "../../schema/words/event.ts";
import type { ClaimTrace } from "../../worker/loop/run-claimed-command.ts";

/** Spans of a worker: one for each claim that ended, and within it one for each run of a task. */
export function createClaimTraces(
  tracing: Pick<Tracing, "end">,
  worker: string,
  now: () => number,
): (work: ClaimedWork) => ClaimTrace | undefined {
  return (work) => {
    const parent = parseTraceparent(work.command.trace);
    if (parent === undefined || !parent.sampled) return undefined;
    const { command, attempt } = work;
    const context = { ...parent, spanId: spanIdOf(command.command_id, attempt) };
    const ids = { "flow.execution_id": command.execution_id, "flow.command_id": command.command_id };
    const startMs = now();
    return {
      traceparent: (taskRunId, run) => formatTraceparent({ ...context, spanId: taskSpanId(context, taskRunId, run) }),
      observe(events) {
        for (const event of events) {
          if (event.type === "task.done") tracing.end(taskSpan(context, event, ids));
          if (event.type !== "command.completed" && event.type !== "command.failed") continue;
          tracing.end({
            ...context,
            parentSpanId: parent.spanId,
            name: `command ${command.step}`,
            kind: "consumer",
            startMs,
            endMs: event.at,
            ...failure(event),
            attributes: { ...ids, "flow.step": command.step, "flow.attempt": attempt, "flow.worker": worker },
          });
        }
      },
    };
  };
}

/** A task's run has the same id when another worker repeats it: the claim's span id distinguishes them. */
function taskSpanId(claim: TraceContext, taskRunId: string, run: number): string {
  return spanIdOf(claim.spanId, taskRunId, run);
}

function taskSpan(claim: TraceContext, event: EventOf<"task.done">, ids: Record<string, string>) {
  const { at, step, task, task_run_id, run, iteration, duration_ms } = event;
  return {
    traceId: claim.traceId,
    spanId: taskSpanId(claim, task_run_id, run),
    parentSpanId: claim.spanId,
    name: `task ${task}`,
    kind: "internal" as const,
    startMs: at - duration_ms,
    endMs: at,
    ...failure(event),
    attributes: { ...ids, "flow.step": step, "flow.task": task, "flow.run": run, "flow.iteration": iteration },
  };
}

function failure(event: FlowEvent): { error?: string } {
  return "error" in event ? { error: event.error?.message ?? "" } : {};
}
