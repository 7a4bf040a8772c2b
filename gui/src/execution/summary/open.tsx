import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { workerPool } from "../../api/queries.ts";
import type { Execution, OpenCommand, WaitingFor } from "../../api/types.ts";
import { Ago, Lasting, useNow } from "../../parts/now.tsx";
import { clockText, durationText, momentText } from "../../parts/time.ts";
import { EndWait } from "../steering/end-wait.tsx";
import { Override } from "../steering/override.tsx";
import { Resume } from "../steering/pause.tsx";
import { loopText } from "../traced/step-state.ts";
import { busyCommands, ownWaits, queuedCommands, retryText } from "./situation.ts";
import { StepLink } from "./step-link.tsx";
import { whyFree } from "./why-free.ts";

/** Commands, waits and called executions that are named one by one. */
const NAMED_MAX = 3;

/** What an execution does now. */
export function Running({ execution }: { execution: Execution }): ReactNode {
  const busy = busyCommands(execution);
  const steps = [...new Set(busy.map(({ step }) => step))];
  const [first] = steps;
  const step = execution.steps.find(({ name }) => name === first);
  const children = busy.flatMap((command) => command.children ?? []);
  return (
    <>
      <div className="say">
        <p className="big">
          {children.length > 0 && steps.length === 1 ? "Waiting for what it called in " : "Running "}
          {steps.slice(0, NAMED_MAX).map((name, index) => (
            <span key={name}>
              {index > 0 && ", "}
              <StepLink name={name} />
            </span>
          ))}
          {steps.length > NAMED_MAX && ` and ${steps.length - NAMED_MAX} more steps`}
          {step?.started_at != null && (
            <>
              {" "}
              for <Lasting from={step.started_at} to={null} />
            </>
          )}
        </p>
        <p className="row facts-line">
          {step?.loop !== undefined && <span>{loopText(step.loop, false)}</span>}
          {busy.length === 1 && busy[0] !== undefined && <BusyCommand command={busy[0]} />}
          {busy.length > 1 && <span>{busy.length} commands with workers</span>}
          {children.slice(0, NAMED_MAX).map((id) => (
            <Link key={id} to="/executions/$executionId" params={{ executionId: id }} className="mono">
              {id}
            </Link>
          ))}
          {children.length > NAMED_MAX && (
            <Link to="/executions" search={{ parent: execution.execution_id }}>
              and {children.length - NAMED_MAX} more
            </Link>
          )}
        </p>
        <Progress execution={execution} />
        <QueuedToo execution={execution} />
      </div>
      <div className="row acts">
        <Link
          from="/executions/$executionId"
          to="."
          search={(before) => ({ ...before, tab: "log" as const })}
          className="button"
        >
          Follow the log
        </Link>
      </div>
    </>
  );
}

function BusyCommand({ command: { worker, attempt, claimed_at: claimedAt } }: { command: OpenCommand }): ReactNode {
  return (
    <span>
      on {worker}
      {claimedAt !== null && (
        <>
          {" since "}
          <Ago at={claimedAt} />
        </>
      )}
      {attempt > 1 && `, attempt ${attempt}: a worker was lost`}
    </span>
  );
}

function Progress({ execution: { progress } }: { execution: Execution }): ReactNode {
  return (
    <div className="bar tone-busy" role="progressbar" aria-valuenow={progress} aria-label="Progress">
      <span style={{ width: `${progress}%` }} />
    </div>
  );
}

function QueuedToo({ execution }: { execution: Execution }): ReactNode {
  const queued = queuedCommands(execution);
  if (queued.length === 0) return null;
  return (
    <p>
      {queued.length === 1 ? "1 command waits" : `${queued.length.toLocaleString("en")} commands wait`} for a worker.{" "}
      <Why commands={queued} />
    </p>
  );
}

/** That no worker has what could be run, and why. */
export function Queued({ execution }: { execution: Execution }): ReactNode {
  const queued = queuedCommands(execution);
  const [first] = queued;
  const { kinds = [], labels = {}, issued_at: issuedAt, step = "", attempt = 0 } = first ?? {};
  const wanted = [...kinds, ...Object.entries(labels).map(([name, value]) => `${name}=${value}`)];
  return (
    <>
      <div className="say">
        <p className="big">
          {queued.length > 1 ? `${queued.length.toLocaleString("en")} commands wait` : "Waiting"} for a worker
          {wanted.length > 0 && ` with ${wanted.join(", ")}`}
        </p>
        <p>
          <StepLink name={step} />: no worker has taken it{attempt > 0 ? " again" : " yet"}
          {issuedAt !== undefined && (
            <>
              {", since "}
              <Ago at={issuedAt} />
            </>
          )}
          . <Why commands={queued} />
        </p>
      </div>
      <div className="row acts">
        <Link className="button" to="/operations">
          Why is nothing running?
        </Link>
      </div>
    </>
  );
}

/** Whether there is a worker that could take what is queued. Users who may not see the workers get no hint about them. */
function Why({ commands }: { commands: readonly OpenCommand[] }): ReactNode {
  const pool = useQuery(workerPool());
  const why = pool.data === undefined ? undefined : whyFree(commands, pool.data.items);
  return why === undefined ? null : <span className="why">{why}</span>;
}

/** When it tries again, what, and after which error. */
export function Retrying({ execution }: { execution: Execution }): ReactNode {
  const now = useNow();
  const { next_retry: retry } = execution;
  if (retry == null) return null;
  const { at, step, task, run, iteration, error } = retry;
  const owner = execution.steps.find(({ name }) => name === step);
  return (
    <>
      <div className="say">
        <p className="big number" data-part="countdown">
          {retryText(at, now)}, attempt {run}
        </p>
        <p className="wrap">{error?.message}</p>
        <p className="row facts-line">
          <span>
            step <StepLink name={step} />
            {task !== step && `, task ${task}`}
            {iteration !== undefined && `, item ${iteration}`}
          </span>
          {error !== null && <code>{error.code}</code>}
          <span>
            at <time dateTime={at}>{clockText(Date.parse(at)).slice(0, 8)}</time>
          </span>
        </p>
      </div>
      <div className="row acts">{owner !== undefined && <Override execution={execution} step={owner} />}</div>
    </>
  );
}

/** For what it waits, since when and until when, with the button that ends the wait. */
export function Waiting({ execution }: { execution: Execution }): ReactNode {
  const waits = ownWaits(execution);
  const [first] = waits;
  if (first === undefined) return null;
  const step = execution.steps.find(({ name }) => name === first.step);
  return (
    <>
      <div className="say">
        <p className="big">{waitsText(waits)}</p>
        {waits.slice(0, NAMED_MAX).map((wait) => (
          <Wait key={`${wait.step}-${wait.iteration}-${wait.key}`} wait={wait} />
        ))}
        {waits.length > NAMED_MAX && <p>and {(waits.length - NAMED_MAX).toLocaleString("en")} more</p>}
      </div>
      <div className="row acts">
        <EndWait execution={execution} wait={first} />
        {step !== undefined && <Override execution={execution} step={step} label="End the wait …" />}
      </div>
    </>
  );
}

const MANY = { timer: "timers", signal: "signals", approval: "approvals", retry: "retries" } as const;

function waitsText(waits: readonly WaitingFor[]): ReactNode {
  const [first] = waits;
  if (waits.length === 1 && first !== undefined) {
    if (first.kind === "signal") return `Waiting for signal ${first.name}`;
    if (first.kind === "approval") return `Waiting for approval: ${first.name}`;
    return first.due === undefined
      ? "Waiting for its time"
      : `Waiting until ${momentText(Date.parse(first.due)).slice(0, 16)}`;
  }
  const kinds = [...new Set(waits.map(({ kind }) => MANY[kind]))];
  return `Waiting for ${waits.length} ${kinds.join(" and ")}`;
}

function Wait({ wait: { step, iteration, kind, name, key, due, since } }: { wait: WaitingFor }): ReactNode {
  const now = useNow();
  const left = due === undefined ? 0 : Date.parse(due) - now;
  return (
    <p>
      <StepLink name={step} />
      {iteration !== undefined && `, item ${iteration}`}
      {kind === "signal" && `: signal ${name}`}
      {key !== undefined && ` with key ${key}`}
      {since !== undefined && (
        <>
          , since <Ago at={since} />
        </>
      )}
      {/* Of an approval it may be a reminder: the inbox says when it expires. */}
      {due !== undefined && kind !== "approval" && (
        <>
          {kind === "timer" ? ", until " : ", at most until "}
          <time dateTime={due}>{momentText(Date.parse(due)).slice(0, 16)}</time>
          {left > 0 ? `, in ${durationText(Math.ceil(left / 1_000) * 1_000)}` : ", due now"}
        </>
      )}
    </p>
  );
}

/** Since when it is paused, by whom and why. */
export function Paused({ execution }: { execution: Execution }): ReactNode {
  const { paused } = execution;
  const busy = busyCommands(execution);
  return (
    <>
      <div className="say" data-part="paused">
        <p className="big wrap">{paused?.reason ?? "Paused, no reason given"}</p>
        <p>
          Paused {paused?.by != null && `by ${paused.by}, `}
          {paused !== undefined && <Ago at={paused.since} />}.{" "}
          {busy.length > 0
            ? `${busy.length === 1 ? "1 command is" : `${busy.length} commands are`} still with workers; nothing new begins.`
            : "Nothing new starts until it is resumed."}
        </p>
      </div>
      <div className="row acts">
        <Resume execution={execution} />
      </div>
    </>
  );
}

/** Nothing is open: the moment between two steps. */
export function Deciding(): ReactNode {
  return (
    <div className="say">
      <p className="big">No step is running</p>
      <p>The server is deciding what comes next.</p>
    </div>
  );
}
