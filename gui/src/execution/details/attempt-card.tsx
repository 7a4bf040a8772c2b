import { type ReactNode, useState } from "react";
import { clockText, durationText, momentText } from "../../parts/time.ts";
import { StateSign, toneOfState } from "../state-sign.tsx";
import { isSameError } from "../summary/error-text.tsx";
import type { TaskRun } from "../summary/task-runs.ts";
import { type Attempt, stateOf } from "./attempts.ts";
import { RenderedView } from "./rendered-view.tsx";
import { TaskCard } from "./task-card.tsx";

/** Runs of tasks that are shown before the user asks for more. */
const SHOWN = 20;
/** Number of last runs whose results are loaded at once if the attempt is selected. */
const READ_MAX = 4;

/**
 * One attempt: how long it waited and ran, on which worker, and the inputs and result of each of its tasks. `isAlone`: there is
 * no other; `isOver`: the execution has ended; `shownError`: the error that the page shows above.
 */
export function AttemptCard({
  executionId,
  attempt,
  title,
  isAlone,
  isOpen,
  isOver,
  shownError,
}: {
  executionId: string;
  attempt: Attempt;
  title: string;
  isAlone: boolean;
  isOpen: boolean;
  isOver: boolean;
  shownError: object | undefined;
}): ReactNode {
  const [isShown, setIsShown] = useState(isOpen);
  const [count, setCount] = useState(SHOWN);
  const state = stateOf(attempt);
  // Newest last: that is the order in which they ran. Of many the last are shown.
  const tasks = attempt.tasks.slice(-count);
  const keys = keysOf(attempt.tasks);
  const inputs = { executionId, commandId: attempt.commandId, attempt: attempt.attempt, iteration: attempt.iteration };
  return (
    <details
      className={`attempt ${isAlone ? "alone" : ""} tone-${toneOfState(state)}`}
      open={isShown}
      onToggle={(event) => event.currentTarget === event.target && setIsShown(event.currentTarget.open)}
    >
      <summary>
        <StateSign of={state} /> {title}
        <time
          className="quiet"
          dateTime={new Date(attempt.issuedAt).toISOString()}
          title={momentText(attempt.issuedAt)}
        >
          {clockText(attempt.issuedAt)}
        </time>
      </summary>
      {isShown && (
        <div className="stack">
          <Facts attempt={attempt} isOver={isOver} />
          {attempt.message !== undefined && attempt.tasks.length === 0 && <p className="wrap">{attempt.message}</p>}
          {attempt.tasks.length > count && (
            <button type="button" onClick={() => setCount(count + 100)}>
              {attempt.tasks.length - count} earlier attempts
            </button>
          )}
          {tasks.map((task, index) => (
            <TaskCard
              key={keys[attempt.tasks.length - tasks.length + index]}
              executionId={executionId}
              task={task}
              earlier={tasks.slice(0, index).findLast(({ name }) => name === task.name)}
              isShown={isOpen && index >= tasks.length - READ_MAX}
              nextRun={nextRunOf(task, tasks.slice(index + 1), attempt, isOver)}
              isShownAbove={task.failure !== undefined && isSameError(task.failure, shownError)}
            />
          ))}
          {/* What no worker has taken has no inputs yet. */}
          {(attempt.claimedAt !== undefined || attempt.tasks.length > 0) && <RenderedView request={inputs} />}
        </div>
      )}
    </details>
  );
}

/**
 * What runs of tasks are known by while they go on: the same name, iteration and number comes again where a task jumps back. An event's
 * id would be another one with each line that is written, and a new card would lose how far its log is scrolled and what is marked in it.
 */
function keysOf(tasks: readonly TaskRun[]): string[] {
  const times = new Map<string, number>();
  return tasks.map(({ name, iteration, run }) => {
    const known = `${name}/${iteration ?? ""}/${run}`;
    const time = times.get(known) ?? 0;
    times.set(known, time + 1);
    return `${known}/${time}`;
  });
}

/** When a task runs again: shown while that is still ahead and the execution is open. */
function nextRunOf(
  { name, iteration, nextRunAt }: TaskRun,
  later: readonly TaskRun[],
  { endedAt }: Attempt,
  isOver: boolean,
): string | undefined {
  if (isOver || endedAt !== undefined) return undefined;
  return later.some((run) => run.name === name && run.iteration === iteration) ? undefined : nextRunAt;
}

function Facts({ attempt, isOver }: { attempt: Attempt; isOver: boolean }): ReactNode {
  const { claimedAt, endedAt, issuedAt, parked, worker } = attempt;
  const waited = claimedAt ?? endedAt;
  return (
    <p className="quiet facts-line">
      {waited !== undefined && (
        <span>
          waited <b>{durationText(Math.max(0, waited - issuedAt))}</b>
        </span>
      )}
      {waited === undefined && worker === undefined && <span>{isOver ? "was never taken" : "not taken yet"}</span>}
      {claimedAt !== undefined && endedAt !== undefined && (
        <span>
          ran <b>{durationText(Math.max(0, endedAt - claimedAt))}</b>
        </span>
      )}
      {claimedAt !== undefined && endedAt === undefined && !parked && <span>still running</span>}
      {worker !== undefined && (
        <span>
          on <b>{worker}</b>
        </span>
      )}
    </p>
  );
}
