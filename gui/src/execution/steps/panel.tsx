import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { Execution, Step } from "../../api/types.ts";
import { Ago } from "../../parts/now.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { Status } from "../../parts/status.tsx";
import { Override } from "../steering/override.tsx";
import { Rerun } from "../steering/rerun.tsx";
import { ErrorText, isSameError } from "../summary/error-text.tsx";
import { lastErrorOf } from "../summary/last-error.tsx";
import { AttemptCard } from "./attempt-card.tsx";
import { AttemptList } from "./attempt-list.tsx";
import { attemptTitles } from "./attempt-title.ts";
import { attemptsOf } from "./attempts.ts";
import { RunDiff } from "./run-diff.tsx";
import { inOrder, stepEvents } from "./step-events.ts";

const route = getRouteApi("/executions/$executionId");

/** Attempts that are shown beneath each other; more of them are a list from which one is chosen. */
const STACKED_MAX = 12;

/** One step: its attempts above each other, newest first, with what each task gave. */
export function StepPanel({ execution, step }: { execution: Execution; step: Step }): ReactNode {
  const { command, failed, run, beside } = route.useSearch();
  const isFailed = failed === true;
  const query = { executionId: execution.execution_id, step: step.name };
  const pages = useInfiniteQuery({ ...stepEvents({ ...query, isFailed }), placeholderData: keepPreviousData });
  const attempts = useMemo(() => attemptsOf(inOrder(pages.data?.pages), step.name), [pages.data, step.name]);
  const titles = useMemo(
    () => attemptTitles(attempts, step.runs, !pages.hasNextPage),
    [attempts, step.runs, pages.hasNextPage],
  );
  const lastError = lastErrorOf(execution);
  const isList = isFailed || step.loop !== undefined || attempts.length > STACKED_MAX;
  return (
    <div className="stack">
      <div className="row spread">
        <h2 className="row">
          <Status of={step.status} isOver={execution.ended_at !== null} /> <span className="wrap">{step.name}</span>
        </h2>
        <div className="row">
          {execution.ended_at === null && isOpen(step) && <Override execution={execution} step={step} />}
          {execution.ended_at !== null && step.runs > 0 && <Rerun execution={execution} step={step.name} />}
          <Link
            from="/executions/$executionId"
            to="."
            search={(before) => ({ ...before, tab: "events" as const, step: step.name })}
          >
            Its events
          </Link>
        </div>
      </div>
      {step.reused_from !== undefined && <Reused from={step.reused_from.execution_id} step={step.name} />}
      {step.overridden !== undefined && <ByHand of={step.overridden} />}
      {step.error != null && !isSameError(step.error, lastError) && <ErrorText error={step.error} isShort />}
      {run !== undefined && beside !== undefined && (
        <RunDiff executionId={execution.execution_id} before={Number(beside)} after={Number(run)} />
      )}
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.data !== undefined && attempts.length === 0 && step.reused_from === undefined && (
        <p className="quiet">{nothingText(step, isFailed, execution.ended_at !== null)}</p>
      )}
      {isList ? (
        <>
          <AttemptList attempts={attempts} titles={titles} chosen={command} step={step} isFailed={isFailed} />
          {command !== undefined && (
            <ChosenAttempt key={command} execution={execution} step={step} command={command} titles={titles} />
          )}
        </>
      ) : (
        attempts.map((attempt, index) => (
          <AttemptCard
            key={attempt.key}
            executionId={execution.execution_id}
            attempt={attempt}
            title={titles.get(attempt.key) ?? ""}
            isOpen={index === 0}
            shownError={lastError}
            isOver={execution.ended_at !== null}
          />
        ))
      )}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          {pages.isFetchingNextPage ? "Reading …" : "Earlier ones"}
        </button>
      )}
    </div>
  );
}

const ENDED = { skip: "Skipped", complete: "Completed", fail: "Failed" } as const;

/** Who has ended the step, and why. */
function ByHand({ of: { action, by, reason, at } }: { of: NonNullable<Step["overridden"]> }): ReactNode {
  return (
    <p className="wrap">
      {ENDED[action]} by {by ?? "hand"}, <Ago at={at} />: {reason}
    </p>
  );
}

/** That a step's result was taken over. */
function Reused({ from, step }: { from: string; step: string }): ReactNode {
  return (
    <p>
      It did not run here. Its result is that of{" "}
      <Link to="/executions/$executionId" params={{ executionId: from }} search={{ step }}>
        {from}
      </Link>
      .
    </p>
  );
}

function ChosenAttempt({
  execution,
  step,
  command,
  titles,
}: {
  execution: Execution;
  step: Step;
  command: string;
  /** Of the attempts that are listed, by their keys. */
  titles: ReadonlyMap<string, string>;
}): ReactNode {
  const query = { executionId: execution.execution_id, step: step.name, commandId: command };
  const pages = useInfiniteQuery(stepEvents(query));
  const attempts = useMemo(
    () => attemptsOf(inOrder(pages.data?.pages), step.name).filter(({ commandId }) => commandId === command),
    [pages.data, step.name, command],
  );
  if (pages.isError) return <ProblemPanel error={pages.error} again={() => void pages.refetch()} />;
  if (pages.data === undefined) return <p className="quiet">Loading …</p>;
  if (attempts.length === 0) return <p className="quiet">The log has no such attempt of this step.</p>;
  const own = attemptTitles(attempts, 1, true);
  return attempts.map((attempt) => (
    <AttemptCard
      key={attempt.key}
      executionId={execution.execution_id}
      attempt={attempt}
      title={titles.get(attempt.key) ?? own.get(attempt.key) ?? ""}
      isOpen
      shownError={lastErrorOf(execution)}
      isOver={execution.ended_at !== null}
    />
  ));
}

function isOpen({ status }: Step): boolean {
  return status === "RUNNING" || status === "WAITING" || status === "PENDING";
}

function nothingText(step: Step, isFailed: boolean, isOver: boolean): string {
  if (isFailed) return "No iteration failed.";
  if (step.status === "SKIPPED") return "It was skipped: no path led here, or its condition said no.";
  if (step.status === "PENDING") return isOver ? "It was not reached: the execution ended first." : "It has not begun.";
  return "The log has no command of this step.";
}
