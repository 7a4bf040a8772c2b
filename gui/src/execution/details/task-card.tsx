import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { JsonView } from "../../parts/json/view.tsx";
import { Ago, useNow } from "../../parts/now.tsx";
import { durationText } from "../../parts/time.ts";
import { StateSign } from "../state-sign.tsx";
import { ErrorText, tracebackOf } from "../summary/error-text.tsx";
import { type TaskRun, takeTask } from "../summary/task-runs.ts";
import { wholeEvent } from "./step-events.ts";
import { TaskLog } from "./task-log.tsx";

/**
 * One run of a task: its result, its log, why it failed. `earlier`: the run before it, to compare with; `isShown`: a long
 * result is loaded at once; `nextRun`: when it is run again; `isShownAbove`: the page shows its error above.
 */
export function TaskCard({
  executionId,
  task,
  earlier,
  isShown,
  nextRun,
  isShownAbove,
}: {
  executionId: string;
  task: TaskRun;
  earlier: TaskRun | undefined;
  isShown: boolean;
  nextRun: string | undefined;
  isShownAbove: boolean;
}): ReactNode {
  const { name, run, status, failure, log, progress, childId } = task;
  return (
    <section className="task" aria-label={`Task ${name}, attempt ${run}`}>
      <p className="task-head">
        <StateSign of={status === "running" ? "RUNNING" : status.toUpperCase()} />
        <strong className="wrap">{name}</strong>
        {run > 1 && <span>attempt {run}</span>}
        {status !== "running" && <span className="quiet number">{durationText(task.durationMs)}</span>}
        <span className="links">
          {childId !== undefined && (
            <Link to="/executions/$executionId" params={{ executionId: childId }}>
              what it called
            </Link>
          )}
          {earlier !== undefined && earlier.status !== "running" && status !== "running" && (
            <Link
              from="/executions/$executionId"
              to="."
              resetScroll={false}
              search={(before) => ({ ...before, run: String(task.eventId), beside: String(earlier.eventId) })}
            >
              compare with attempt {earlier.run}
            </Link>
          )}
          <Link
            from="/executions/$executionId"
            to="."
            search={(before) => ({ ...before, tab: "events" as const, event: String(task.eventId) })}
          >
            event
          </Link>
        </span>
      </p>
      {failure !== undefined && <ErrorText error={failure} isShownAbove={isShownAbove} />}
      {nextRun !== undefined && <NextRun at={nextRun} />}
      {progress !== undefined && Object.keys(progress).length > 0 && status === "running" && (
        <JsonView label="Progress" value={progress} />
      )}
      {log !== undefined && !task.isOmitted && (
        <TaskLog log={log} isLive={status === "running"} shown={failure && tracebackOf(failure.details)} />
      )}
      <Output executionId={executionId} task={task} isShown={isShown} />
    </section>
  );
}

function NextRun({ at }: { at: string }): ReactNode {
  const isDue = Date.parse(at) <= useNow();
  return isDue ? (
    <p>The next attempt has begun, or begins now.</p>
  ) : (
    <p>
      The next attempt begins <Ago at={at} />.
    </p>
  );
}

/**
 * A short result is shown in the page; a long one is loaded on request, together with the log. Until then the log is what the
 * task reported while it ran, which may lack its last lines.
 */
function Output({ executionId, task, isShown }: { executionId: string; task: TaskRun; isShown: boolean }): ReactNode {
  const [isRequested, setIsRequested] = useState(isShown);
  const whole = useQuery({ ...wholeEvent(executionId, task.eventId), enabled: isRequested && task.isOmitted });
  if (!task.isOmitted) {
    // An error is not shown twice.
    if (task.shown === undefined || task.failure !== undefined) return null;
    return <JsonView label={`Output of ${task.name}`} value={task.shown} />;
  }
  if (whole.data != null) {
    const runs: TaskRun[] = [];
    takeTask(runs, whole.data);
    const [read] = runs;
    return (
      <>
        <OmittedLog log={read?.log ?? task.log} failure={read?.failure ?? task.failure} />
        {read?.failure !== undefined && task.failure === undefined && <ErrorText error={read.failure} />}
        {read?.shown !== undefined && read.failure === undefined && (
          <JsonView label={`Output of ${task.name}`} value={read.shown} />
        )}
      </>
    );
  }
  return (
    <>
      <OmittedLog log={task.log} failure={task.failure} />
      <p className="row">
        <button type="button" disabled={whole.isFetching} onClick={() => setIsRequested(true)}>
          {whole.isFetching ? "Reading …" : "Show output and log"}
        </button>
        {whole.isError && <span role="alert">{whole.error.message}</span>}
        {whole.data === null && <span role="alert">The log no longer has it.</span>}
      </p>
    </>
  );
}

function OmittedLog({ log, failure }: Pick<TaskRun, "log" | "failure">): ReactNode {
  return log && <TaskLog log={log} isLive={false} shown={failure && tracebackOf(failure.details)} />;
}
