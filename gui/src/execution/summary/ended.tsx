import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Execution } from "../../api/types.ts";
import { Rerun } from "../steering/rerun.tsx";
import { lastErrorOf, lastFailed } from "./last-error.ts";
import { StepLink } from "./step-link.tsx";
import type { TaskFailure } from "./task-runs.ts";

/** Characters of an error's message, and of a result, that are shown at first sight. */
const MESSAGE_MAX = 600;
const RESULT_MAX = 240;

/** How an execution ended: its error with its evidence and the next thing to do, or its result. */
export function Ended({ execution }: { execution: Execution }): ReactNode {
  const error = lastErrorOf(execution) as TaskFailure | undefined;
  if (execution.status === "COMPLETED") return <Completed execution={execution} />;
  if (execution.status === "CANCELLED") return <Cancelled execution={execution} error={error} />;
  return <Failed execution={execution} error={error} />;
}

function Completed({ execution }: { execution: Execution }): ReactNode {
  const { result, steps } = execution;
  const text = result == null ? "" : JSON.stringify(result);
  const loop = steps.find((step) => (step.loop?.failed ?? 0) > 0);
  return (
    <>
      <div className="say">
        <p className="big wrap">
          {text === "" ? (
            "It completed without a result"
          ) : (
            <code>{text.length > RESULT_MAX ? `${text.slice(0, RESULT_MAX)}…` : text}</code>
          )}
        </p>
        {loop !== undefined && (
          <p>
            {loop.loop?.failed} {loop.loop?.failed === 1 ? "item" : "items"} of <StepLink name={loop.name} failed />{" "}
            failed, which it tolerates.
          </p>
        )}
      </div>
      <div className="row acts">
        <Link
          from="/executions/$executionId"
          to="."
          search={(before) => ({ ...before, tab: "data" as const })}
          className="button"
        >
          Inputs and result
        </Link>
      </div>
    </>
  );
}

function Cancelled({ execution, error }: { execution: Execution; error: TaskFailure | undefined }): ReactNode {
  return (
    <>
      <div className="say">
        <p className="big wrap">{error?.message ?? "It was cancelled"}</p>
        <p className="quiet">What had completed keeps its result when it runs again.</p>
      </div>
      <div className="row acts">
        <Rerun execution={execution} label="Run what is left …" />
      </div>
    </>
  );
}

function Failed({ execution, error }: { execution: Execution; error: TaskFailure | undefined }): ReactNode {
  const failed = lastFailed(execution);
  const step = failed?.name ?? error?.step;
  const isLoop = (failed?.loop?.failed ?? 0) > 0;
  return (
    <>
      <div className="say error">
        <p className="big wrap">{error === undefined ? "It failed" : error.message.slice(0, MESSAGE_MAX)}</p>
        {error !== undefined && <Evidence error={error} step={step} isLoop={isLoop} />}
        {error !== undefined && <Cause failure={error} />}
      </div>
      <div className="row acts">
        {isLoop && failed !== undefined ? (
          <Rerun execution={execution} label={itemsText(failed.loop?.failed ?? 0)} />
        ) : (
          <Rerun execution={execution} label="Run from what failed …" />
        )}
        <Link
          from="/executions/$executionId"
          to="."
          search={(before) => ({ ...before, tab: "log" as const, ...(step !== undefined && { step }) })}
          className="button"
        >
          Open the log
        </Link>
      </div>
    </>
  );
}

function itemsText(count: number): string {
  return count === 1 ? "Run the failed item again …" : `Run the ${count.toLocaleString("en")} failed items again …`;
}

/** The step and the task that failed, the code, and whether another try may help. */
function Evidence({
  error,
  step,
  isLoop,
}: {
  error: TaskFailure;
  step: string | undefined;
  isLoop: boolean;
}): ReactNode {
  const { code, kind, status, attempt, retryable, task } = error;
  return (
    <p className="row facts-line">
      {step !== undefined && (
        <span>
          step <StepLink name={step} failed={isLoop} />
          {task !== undefined && task !== step && `, task ${task}`}
        </span>
      )}
      <code>{code}</code>
      {kind !== undefined && kind !== code && <span>{kind.replaceAll("_", " ")}</span>}
      {status !== undefined && <span>HTTP {status}</span>}
      {attempt !== undefined && attempt > 1 && <span>after {attempt} attempts</span>}
      {retryable !== undefined && <span>{retryable ? "trying again may help" : "trying again will not help"}</span>}
      {step !== undefined && (
        <Link
          from="/executions/$executionId"
          to="."
          search={(before) => ({ ...before, tab: "events" as const, step, type: "step.failed", event: undefined })}
        >
          event
        </Link>
      )}
    </p>
  );
}

/** The line, or the execution, in which it began. */
function Cause({ failure: { message, details } }: { failure: TaskFailure }): ReactNode {
  if (typeof details !== "object" || details === null) return null;
  const { exception, file, line, execution_id: childId } = details as Record<string, unknown>;
  const isChild = typeof childId === "string" && /^\d+$/.test(childId);
  return (
    <>
      {typeof exception === "string" && typeof line === "number" && !message.includes(`:${line}`) && (
        <p>
          {exception} at {typeof file === "string" && `${file}, `}line {line}
        </p>
      )}
      {isChild && (
        <p>
          It failed in a called execution:{" "}
          <Link to="/executions/$executionId" params={{ executionId: childId }}>
            {childId}
          </Link>
        </p>
      )}
    </>
  );
}
