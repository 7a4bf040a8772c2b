import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Execution, NextRetry, Step } from "../../api/types.ts";
import { ErrorText } from "./error-text.tsx";
import { StepLink } from "./step-link.tsx";
import type { TaskFailure } from "./task-runs.ts";

/** What went wrong last, where, and what led to it. */
export function LastError({ execution, retry }: { execution: Execution; retry: NextRetry | undefined }): ReactNode {
  const failed = lastFailed(execution);
  const error = lastErrorOf(execution);
  if (error === undefined) {
    return (
      <section className="panel">
        <h2>Last error</h2>
        <NoError steps={execution.steps} />
      </section>
    );
  }
  const { step = execution.error === null ? (retry?.step ?? failed?.name) : failed?.name, task } = error as TaskFailure;
  return (
    <section className="panel tone-bad">
      <h2>Last error</h2>
      <ErrorText error={error} isShort />
      <Cause failure={error as TaskFailure} />
      {step !== undefined && (
        <p className="quiet row">
          <span>
            step <StepLink name={step} failed={hasFailedIterations(execution.steps, step)} />
            {task !== undefined && task !== step && `, task ${task}`}
          </span>
          <Link
            from="/executions/$executionId"
            to="."
            search={(before) => ({
              ...before,
              tab: "events" as const,
              step,
              type: execution.error === null ? "call.error" : "step.failed",
              event: undefined,
            })}
          >
            its event
          </Link>
        </p>
      )}
    </section>
  );
}

/** The error shown at the top of an execution's page; undefined if there is no error. */
export function lastErrorOf(execution: Execution): object | undefined {
  return execution.error ?? execution.next_retry?.error ?? lastFailed(execution)?.error ?? undefined;
}

function lastFailed({ steps }: Execution): Step | undefined {
  return steps.findLast(({ status }) => status === "FAILED");
}

/** The line, or the execution, in which it began. */
function Cause({ failure: { message, details } }: { failure: TaskFailure }): ReactNode {
  if (typeof details !== "object" || details === null) return null;
  const { exception, file, line, execution_id: childId } = details as Record<string, unknown>;
  const isChild = typeof childId === "string" && /^\d+$/.test(childId);
  return (
    <>
      {typeof exception === "string" && typeof line === "number" && !message.includes(`:${line}`) && (
        <p className="quiet">
          {exception} at {typeof file === "string" && `${file}, `}line {line}
        </p>
      )}
      {isChild && (
        <p>
          It failed in what it called:{" "}
          <Link to="/executions/$executionId" params={{ executionId: childId }}>
            {childId}
          </Link>
        </p>
      )}
    </>
  );
}

function NoError({ steps }: { steps: readonly Step[] }): ReactNode {
  const withFailed = steps.find(({ loop }) => (loop?.failed ?? 0) > 0);
  if (withFailed === undefined) return <p>None</p>;
  return (
    <p>
      {withFailed.loop?.failed} iterations of <StepLink name={withFailed.name} failed /> failed.
    </p>
  );
}

function hasFailedIterations(steps: readonly Step[], name: string): boolean {
  return (steps.find((step) => step.name === name)?.loop?.failed ?? 0) > 0;
}
