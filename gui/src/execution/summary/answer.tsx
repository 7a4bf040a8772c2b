import type { ReactNode } from "react";
import type { Execution, NextRetry, Step } from "../../api/types.ts";
import { Ago, Lasting, useNow } from "../../parts/now.tsx";
import { clockText, durationText } from "../../parts/time.ts";
import { LastError } from "./last-error.tsx";
import { ExecutionPaused } from "./pause.tsx";
import { StepLink } from "./step-link.tsx";
import { Waits } from "./waits.tsx";

/** The four first questions: where is it, what does it wait for, what went wrong, when does it retry. */
export function Answer({ execution }: { execution: Execution }): ReactNode {
  const running = execution.steps.filter(({ status }) => status === "RUNNING" || status === "WAITING");
  const retry = execution.next_retry ?? undefined;
  return (
    <div className="answer" data-part="answer">
      <ExecutionPaused execution={execution} />
      <section className="panel">
        <h2>Now</h2>
        <Now execution={execution} running={running} />
        <Progress execution={execution} />
      </section>
      <section className="panel">
        <h2>Waits for</h2>
        <Waits execution={execution} retry={retry} />
      </section>
      <LastError execution={execution} retry={retry} />
      {retry !== undefined && (
        <section className="panel tone-warn">
          <h2>Next retry</h2>
          <Retry retry={retry} />
        </section>
      )}
    </div>
  );
}

function Now({ execution, running }: { execution: Execution; running: Step[] }): ReactNode {
  if (execution.ended_at !== null) {
    return (
      <>
        <p className="big">It has ended: {execution.status.toLowerCase()}</p>
        <p className="quiet">
          <Ago at={execution.ended_at} />
        </p>
      </>
    );
  }
  const [first] = running;
  if (first === undefined) {
    return (
      <>
        <p className="big">No step is running</p>
        <p className="quiet">
          {execution.status === "PAUSED"
            ? "The next begins when it is resumed."
            : "The server is deciding what comes next."}
        </p>
      </>
    );
  }
  return (
    <>
      <p className="big">
        <StepLink name={first.name} />
      </p>
      <p className="quiet">
        {first.started_at !== null && (
          <>
            for <Lasting from={first.started_at} to={null} />
          </>
        )}
        {first.loop !== undefined && `, ${loopText(first.loop)}`}
      </p>
      {running.length > 1 && (
        <p className="quiet">
          and{" "}
          {running.slice(1, 4).map(({ name }) => (
            <span key={name}>
              <StepLink name={name} />{" "}
            </span>
          ))}
          {running.length > 4 && `and ${running.length - 4} more steps`}
        </p>
      )}
    </>
  );
}

/** How far it is; for an execution that has ended, how far it came. */
function Progress({ execution: { progress, steps, ended_at: endedAt } }: { execution: Execution }): ReactNode {
  const count = (state: Step["status"]) => steps.filter(({ status }) => status === state).length;
  const parts = [`${count("COMPLETED")} of ${steps.length} steps done`];
  if (count("SKIPPED") > 0) parts.push(`${count("SKIPPED")} skipped`);
  if (endedAt !== null && count("PENDING") > 0) parts.push(`${count("PENDING")} not reached`);
  if (endedAt !== null) return <p className="quiet">{parts.join(", ")}</p>;
  return (
    <>
      <div className="bar" role="progressbar" aria-valuenow={progress} aria-label="Progress">
        <span style={{ width: `${progress}%` }} />
      </div>
      <p className="quiet">
        {progress} %, {parts.join(", ")}
      </p>
    </>
  );
}

function Retry({ retry: { at, step, task, run, iteration, error } }: { retry: NextRetry }): ReactNode {
  const left = Date.parse(at) - useNow();
  return (
    <>
      <p className="big number" data-part="countdown">
        {left > 0 ? `in ${durationText(Math.ceil(left / 1_000) * 1_000)}` : "due now"}
      </p>
      <p className="quiet">
        run {run} of {task === step ? "step" : `${task} in`} <StepLink name={step} />
        {iteration !== undefined && `, iteration ${iteration}`}, at{" "}
        <time dateTime={at}>{clockText(Date.parse(at)).slice(0, 8)}</time>
      </p>
      {error !== null && (
        <p className="quiet">
          after <code>{error.code}</code>
        </p>
      )}
    </>
  );
}

/** `12 of 40, 1 failed`. */
export function loopText({ total, done, failed }: NonNullable<Step["loop"]>): string {
  return `${done} of ${total ?? "?"}${failed > 0 ? `, ${failed} failed` : ""}`;
}
