import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { DiffView } from "../../parts/json/diff-view.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { type TaskRun, takeTask } from "../summary/task-runs.ts";
import { wholeEvent } from "./step-events.ts";

/** How one run of a task came out beside an earlier one. Each is named by the event of its end. */
export function RunDiff({
  executionId,
  before,
  after,
}: {
  executionId: string;
  before: number;
  after: number;
}): ReactNode {
  const one = useQuery(wholeEvent(executionId, before));
  const other = useQuery(wholeEvent(executionId, after));
  const error = one.error ?? other.error;
  if (error !== null) return <ProblemPanel error={error} />;
  if (one.data === undefined || other.data === undefined) return <p className="quiet">Loading …</p>;
  const [earlier, later] = [runIn(one.data), runIn(other.data)];
  return (
    <section className="panel stack">
      {earlier === undefined || later === undefined ? (
        <p>The log no longer has both of these attempts.</p>
      ) : (
        <DiffView
          label={`From attempt ${earlier.run} of ${earlier.name} to attempt ${later.run}`}
          before={comparedOf(earlier)}
          after={comparedOf(later)}
        />
      )}
      <Link
        from="/executions/$executionId"
        to="."
        resetScroll={false}
        search={(search) => ({ ...search, run: undefined, beside: undefined })}
      >
        Close comparison
      </Link>
    </section>
  );
}

function runIn(event: Parameters<typeof takeTask>[1] | null): TaskRun | undefined {
  const runs: TaskRun[] = [];
  if (event !== null) takeTask(runs, event);
  return runs[0];
}

function comparedOf({ status, failure, shown, log }: TaskRun): Record<string, unknown> {
  return {
    status,
    ...(failure !== undefined ? { error: failure } : { output: shown ?? null }),
    ...(log !== undefined && { log: log.lines }),
  };
}
