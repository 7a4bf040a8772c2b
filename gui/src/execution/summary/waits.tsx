import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { workerPool } from "../../api/queries.ts";
import type { Execution, NextRetry, OpenCommand, WaitingFor } from "../../api/types.ts";
import { Ago, useNow } from "../../parts/now.tsx";
import { durationText, momentText } from "../../parts/time.ts";
import { StepLink } from "./step-link.tsx";
import { whyFree } from "./why-free.ts";

/** Open commands, and executions that were called, that are named one by one. */
const NAMED_MAX = 3;

/** What an execution waits for, and since when: a worker, the end of work, an execution that it called, a time. */
export function Waits({ execution, retry }: { execution: Execution; retry: NextRetry | undefined }): ReactNode {
  if (execution.ended_at !== null) return <p>Nothing: it is over</p>;
  const commands = execution.commands ?? [];
  const isPaused = execution.paused !== undefined;
  if (commands.length === 0) {
    return <p>{isPaused ? "To be resumed" : "Nothing is open: the server decides what comes next"}</p>;
  }
  const free = commands.filter(({ worker, status }) => worker === null && status !== "WAITING");
  const waits = (execution.waiting_for ?? []).filter(({ kind }) => kind !== "retry");
  const busy = commands.filter(({ worker }) => worker !== null);
  const children = busy.flatMap((command) => command.children ?? []);
  return (
    <>
      <p className="big">
        {isPaused && busy.length === 0
          ? "To be resumed"
          : headline(free.length, busy.length, children.length, waits, retry)}
      </p>
      {waits.slice(0, NAMED_MAX).map((wait) => (
        <Wait key={`${wait.step}-${wait.iteration}`} wait={wait} />
      ))}
      {waits.length > NAMED_MAX && <p className="quiet">and {waits.length - NAMED_MAX} more</p>}
      {free.slice(0, NAMED_MAX).map((command) => (
        <FreeCommand key={command.command_id} command={command} />
      ))}
      {free.length > 0 && !isPaused && <WhyFree commands={free} />}
      {busy.slice(0, free.length > 0 ? 1 : NAMED_MAX).map((command) => (
        <BusyCommand key={command.command_id} command={command} />
      ))}
      {children.length > 0 && <Called ids={children} />}
    </>
  );
}

function headline(
  free: number,
  busy: number,
  children: number,
  waits: readonly WaitingFor[],
  retry: NextRetry | undefined,
): string {
  if (free > 0)
    return `${free === 1 ? "A worker" : `Workers for ${free} commands`}${busy > 0 ? `, ${busy} at work` : ""}`;
  if (children > 0) return children === 1 ? "An execution that it called" : `${children} executions that it called`;
  if (busy === 0 && waits.length > 0) return waitsText(waits);
  if (retry !== undefined && busy === 1) return "The time of the next retry";
  return busy === 1 ? "A worker to finish" : `${busy} commands at work`;
}

function waitsText(waits: readonly WaitingFor[]): string {
  const [first] = waits;
  const isSignal = ({ kind }: WaitingFor) => kind === "signal";
  if (waits.length === 1) return first !== undefined && isSignal(first) ? `Signal ${first.name}` : "A timer";
  if (waits.every(isSignal)) return `${waits.length} signals`;
  return waits.some(isSignal) ? `${waits.length} timers and signals` : `${waits.length} timers`;
}

function Wait({ wait: { step, iteration, kind, name, key, due } }: { wait: WaitingFor }): ReactNode {
  const now = useNow();
  const left = due === undefined ? 0 : Date.parse(due) - now;
  return (
    <p className="quiet">
      <StepLink name={step} />
      {iteration !== undefined && `, iteration ${iteration}`}: {kind === "signal" && `for signal ${name}`}
      {key !== undefined && ` with key ${key}`}
      {due !== undefined && (
        <>
          {kind === "signal" ? ", at most " : ""}until <time dateTime={due}>{momentText(Date.parse(due))}</time>
          {left > 0 ? `, in ${durationText(Math.ceil(left / 1_000) * 1_000)}` : ", due now"}
        </>
      )}
    </p>
  );
}

function FreeCommand({ command }: { command: OpenCommand }): ReactNode {
  const { issued_at: issuedAt, kinds = [], labels = {} } = command;
  const wanted = [...kinds, ...Object.entries(labels).map(([name, value]) => `${name}=${value}`)];
  return (
    <p className="quiet">
      <StepLink name={command.step} />: no worker has taken it{command.attempt > 0 ? " again" : " yet"}
      {issuedAt !== undefined && (
        <>
          {", since "}
          <Ago at={issuedAt} />
        </>
      )}
      {wanted.length > 0 && `; needs ${wanted.join(", ")}`}
    </p>
  );
}

/** Whether there is a worker that could take what is free. */
function WhyFree({ commands }: { commands: readonly OpenCommand[] }): ReactNode {
  const pool = useQuery(workerPool());
  // Users who may not see the workers get no hint about them.
  if (pool.data === undefined) return null;
  const why = whyFree(commands, pool.data.items);
  return why === undefined ? null : <Hint>{why}</Hint>;
}

function Hint({ children }: { children: ReactNode }): ReactNode {
  return (
    <p className="hint tone-warn">
      {children} <Link to="/operations">Why is nothing running?</Link>
    </p>
  );
}

function BusyCommand({ command }: { command: OpenCommand }): ReactNode {
  const { step, worker, attempt, claimed_at: claimedAt, iterations } = command;
  return (
    <p className="quiet">
      <StepLink name={step} />
      {iterations !== undefined && `, iteration ${iterations.from}`}: on {worker}
      {claimedAt !== null && (
        <>
          {" since "}
          <Ago at={claimedAt} />
        </>
      )}
      {attempt > 1 && `, attempt ${attempt}: a worker was lost`}
    </p>
  );
}

function Called({ ids }: { ids: readonly string[] }): ReactNode {
  return (
    <p className="row">
      {ids.slice(0, NAMED_MAX).map((id) => (
        <Link key={id} to="/executions/$executionId" params={{ executionId: id }} className="mono">
          {id}
        </Link>
      ))}
      {ids.length > NAMED_MAX && (
        <Link from="/executions/$executionId" to="." search={(before) => ({ ...before, tab: "children" as const })}>
          and {ids.length - NAMED_MAX} more
        </Link>
      )}
    </p>
  );
}
