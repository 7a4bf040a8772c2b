import type { ReactNode } from "react";
import type { Execution, OpenCommand, Step } from "../api/types.ts";
import { Ago } from "../parts/now.tsx";

/** Open commands that are named one by one. */
const NAMED_MAX = 3;

/** The four things that are asked first: where is it, what does it wait for, what went wrong, how far is it. */
export function Answer({ execution }: { execution: Execution }): ReactNode {
  const running = execution.steps.filter(({ status }) => status === "RUNNING");
  return (
    <div className="answer" data-part="answer">
      <section className="panel">
        <h2>Now</h2>
        <Now execution={execution} running={running} />
      </section>
      <section className="panel">
        <h2>Waits for</h2>
        <Waits commands={execution.commands ?? []} isOver={execution.ended_at !== null} />
      </section>
      <section className={execution.error === null && !failedStep(execution) ? "panel" : "panel tone-bad"}>
        <h2>Last error</h2>
        <LastError execution={execution} />
      </section>
      <section className="panel">
        <h2>Progress</h2>
        <p className="big number">{execution.progress} %</p>
        <div className="bar" role="progressbar" aria-valuenow={execution.progress} aria-label="Progress">
          <span style={{ width: `${execution.progress}%` }} />
        </div>
        <p className="quiet">
          {execution.steps.filter(({ status }) => status === "COMPLETED").length} of {execution.steps.length} steps
        </p>
      </section>
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
  if (first === undefined) return <p className="big">No step is running</p>;
  return (
    <>
      <p className="big">{first.name}</p>
      <p className="quiet">
        {first.started_at !== null && (
          <>
            since <Ago at={first.started_at} />
          </>
        )}
        {first.loop !== undefined && `, ${loopText(first.loop)}`}
        {running.length > 1 && `, and ${running.length - 1} more steps`}
      </p>
    </>
  );
}

function Waits({ commands, isOver }: { commands: readonly OpenCommand[]; isOver: boolean }): ReactNode {
  if (isOver) return <p>Nothing: it is over</p>;
  if (commands.length === 0) return <p>Nothing is open: the server decides what comes next</p>;
  const free = commands.filter(({ worker }) => worker === null);
  return (
    <>
      <p className="big">
        {free.length > 0 ? `${free.length} for a worker` : `${commands.length} at work`}
        {free.length > 0 && free.length < commands.length && `, ${commands.length - free.length} at work`}
      </p>
      {commands.slice(0, NAMED_MAX).map((command) => (
        <p key={command.command_id} className="quiet">
          {command.step}: {command.worker === null ? "no worker has taken it yet" : `on ${command.worker}`}
          {command.claimed_at !== null && (
            <>
              {" since "}
              <Ago at={command.claimed_at} />
            </>
          )}
          {command.attempt > 1 && `, attempt ${command.attempt}`}
        </p>
      ))}
    </>
  );
}

function LastError({ execution }: { execution: Execution }): ReactNode {
  const failed = failedStep(execution);
  const error = execution.error ?? failed?.error;
  if (error === null || error === undefined) return <p>None</p>;
  return (
    <>
      <p className="wrap">{error.message.slice(0, 600)}</p>
      <p className="quiet">
        <code>{error.code}</code>
        {failed !== undefined && ` in step ${failed.name}`}
      </p>
    </>
  );
}

function failedStep(execution: Execution): Step | undefined {
  return execution.steps.findLast(({ status }) => status === "FAILED");
}

/** `12 of 40, 1 failed`. */
export function loopText({ total, done, failed }: NonNullable<Step["loop"]>): string {
  return `${done} of ${total ?? "?"}${failed > 0 ? `, ${failed} failed` : ""}`;
}
