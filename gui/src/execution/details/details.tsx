import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo } from "react";
import type { Execution, Step } from "../../api/types.ts";
import { Ago } from "../../parts/now.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { StateSign } from "../state-sign.tsx";
import { EndWait } from "../steering/end-wait.tsx";
import { Override } from "../steering/override.tsx";
import { Rerun } from "../steering/rerun.tsx";
import { ErrorText, isSameError } from "../summary/error-text.tsx";
import { lastErrorOf } from "../summary/last-error.ts";
import { ownWaits } from "../summary/situation.ts";
import { clippedTo } from "../traced/clipped.ts";
import { stepState } from "../traced/step-state.ts";
import { calledDetail, type Moment, useStepKinds } from "../traced/use-traced.ts";
import type { useSelection } from "../use-selection.ts";
import { AttemptCard } from "./attempt-card.tsx";
import { attemptTitles } from "./attempt-title.ts";
import { attemptsOf } from "./attempts.ts";
import { LoopSummary } from "./loop-summary.tsx";
import { RunDiff } from "./run-diff.tsx";
import { inOrder, stepEvents } from "./step-events.ts";

/** What is chosen on the page. */
export type Selected = ReturnType<typeof useSelection>;

/** Everything about the row that is chosen: why it failed, its attempts, inputs, result and log, and what can be done with it. */
export function Details(of: { execution: Execution; selection: Selected; moment: Moment | undefined }): ReactNode {
  const { execution, selection, moment } = of;
  const called = useCalledOne(selection.in);
  const then = called.data === undefined || moment === undefined ? called.data : clippedTo(called.data, moment.at);
  const owner = selection.in === undefined ? execution : then;
  const step = owner?.steps.find(({ name }) => name === selection.step);
  return (
    <section className="card details" aria-label="Step">
      {called.isError && <ProblemPanel error={called.error} again={() => void called.refetch()} />}
      {owner === undefined && !called.isError && <p className="pad quiet">Loading …</p>}
      {owner !== undefined && step === undefined && (
        <p className="pad quiet">
          {selection.isOwnChoice
            ? `This execution has no step ${selection.step}.`
            : "Choose a step to see its attempts, inputs and results."}
        </p>
      )}
      {owner !== undefined && step !== undefined && (
        <StepDetails
          key={`${owner.execution_id}/${step.name}/${selection.command}/${selection.iteration}`}
          execution={owner}
          step={step}
          selection={selection}
          moment={moment}
        />
      )}
    </section>
  );
}

/** A called execution. It has no stream of its own here: what else was read of it is read again when its log has grown. */
function useCalledOne(id: string | undefined) {
  const called = useQuery({ ...calledDetail(id ?? ""), enabled: id !== undefined });
  const client = useQueryClient();
  const lastEventId = called.data?.last_event_id;
  useEffect(() => {
    if (id === undefined || lastEventId === undefined) return;
    const isOfIt = ({ queryKey }: { queryKey: readonly unknown[] }) => queryKey.length > 2;
    void client.invalidateQueries({ queryKey: ["execution", id], predicate: isOfIt });
  }, [client, id, lastEventId]);
  return called;
}

interface StepDetailsProps {
  execution: Execution;
  step: Step;
  selection: Selected;
  moment: Moment | undefined;
}

function StepDetails({ execution, step, selection, moment }: StepDetailsProps): ReactNode {
  const kinds = useStepKinds(execution, step.name);
  const { iteration, command } = selection;
  const isLoop = step.loop !== undefined && iteration === undefined && command === undefined;
  const lastError = lastErrorOf(execution);
  return (
    <>
      <header>
        <StateSign of={stepState(execution, step)} />
        <h2 className="wrap">
          {step.name}
          {iteration !== undefined && ` · item ${iteration}`}
        </h2>
        <span className="aside mono">{kinds.join(", ")}</span>
      </header>
      <div className="pad stack">
        <StepActions execution={execution} step={step} isPast={moment !== undefined} />
        {selection.in !== undefined && (
          <p className="quiet">
            A step of{" "}
            <Link
              to="/executions/$executionId"
              params={{ executionId: execution.execution_id }}
              search={{ step: step.name }}
            >
              {execution.path}
            </Link>
          </p>
        )}
        {step.reused_from !== undefined && <Reused from={step.reused_from.execution_id} step={step.name} />}
        {step.overridden !== undefined && <ByHand of={step.overridden} />}
        {step.error != null && iteration === undefined && !isSameError(step.error, lastError) && (
          <ErrorText error={step.error} isShort />
        )}
        {selection.run !== undefined && selection.beside !== undefined && (
          <RunDiff
            executionId={execution.execution_id}
            before={Number(selection.beside)}
            after={Number(selection.run)}
          />
        )}
        {isLoop ? (
          <LoopSummary execution={execution} step={step} moment={moment} />
        ) : (
          <Attempts execution={execution} step={step} selection={selection} moment={moment} />
        )}
      </div>
    </>
  );
}

/** What can be done with a step, the next thing first. */
function StepActions({ execution, step, isPast }: { execution: Execution; step: Step; isPast: boolean }): ReactNode {
  const wait = ownWaits(execution).find((one) => one.step === step.name);
  return (
    <div className="row">
      {!isPast && wait !== undefined && <EndWait execution={execution} wait={wait} />}
      {!isPast && execution.ended_at === null && isOpen(step) && <Override execution={execution} step={step} />}
      {!isPast && execution.ended_at !== null && step.runs > 0 && <Rerun execution={execution} step={step.name} />}
      {!isPast && execution.ended_at !== null && step.runs > 0 && (
        <Link
          to="/register"
          search={{
            ...(execution.version > 0 ? { from: execution.path } : { draft: execution.catalog_id }),
            ...{ step: step.name, of: execution.execution_id },
          }}
          className="button quiet"
        >
          Edit and test …
        </Link>
      )}
      <Link
        from="/executions/$executionId"
        to="."
        search={(before) => ({ ...before, tab: "events" as const, step: step.name })}
        className="button quiet"
      >
        Events
      </Link>
    </div>
  );
}

/** The attempts of what is chosen, newest first: of a step, of one of its commands, or of an item of its loop. */
function Attempts({ execution, step, selection, moment }: StepDetailsProps): ReactNode {
  const { command, iteration } = selection;
  const query = { executionId: execution.execution_id, step: step.name, commandId: command };
  const pages = useInfiniteQuery({ ...stepEvents(query), placeholderData: keepPreviousData });
  const attempts = useMemo(() => {
    const events = inOrder(pages.data?.pages).filter(
      ({ event_id }) => moment === undefined || event_id <= moment.event,
    );
    const found = attemptsOf(events, step.name).filter(
      ({ commandId }) => command === undefined || commandId === command,
    );
    return iteration === undefined ? found : found.map((attempt) => ofIteration(attempt, Number(iteration)));
  }, [pages.data, step.name, command, iteration, moment]);
  const titles = useMemo(
    () => attemptTitles(attempts, command === undefined ? step.runs : 1, !pages.hasNextPage),
    [attempts, command, step.runs, pages.hasNextPage],
  );
  if (pages.isError && pages.data === undefined) {
    return <ProblemPanel error={pages.error} again={() => void pages.refetch()} />;
  }
  if (pages.data === undefined) return <p className="quiet">Loading …</p>;
  const isOver = execution.ended_at !== null;
  return (
    <>
      {attempts.length === 0 && step.reused_from === undefined && (
        <p className="quiet">{command === undefined ? nothingText(step, isOver) : "It had not begun."}</p>
      )}
      {attempts.map((attempt, index) => (
        <AttemptCard
          key={attempt.key}
          executionId={execution.execution_id}
          attempt={attempt}
          title={titles.get(attempt.key) ?? ""}
          isAlone={attempts.length === 1}
          isOpen={index === 0}
          shownError={lastErrorOf(execution)}
          isOver={isOver}
        />
      ))}
      {pages.hasNextPage && attempts.length < step.runs && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          {pages.isFetchingNextPage ? "Reading …" : "Earlier attempts"}
        </button>
      )}
    </>
  );
}

/** What an attempt did for one of its items. */
function ofIteration(attempt: ReturnType<typeof attemptsOf>[number], iteration: number): typeof attempt {
  return { ...attempt, iteration, tasks: attempt.tasks.filter((task) => task.iteration === iteration) };
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

function isOpen({ status }: Step): boolean {
  return status === "RUNNING" || status === "WAITING" || status === "PENDING";
}

function nothingText(step: Step, isOver: boolean): string {
  if (step.status === "SKIPPED") return "It was skipped: no path led here, or its condition said no.";
  if (step.status === "PENDING") return isOver ? "It was not reached: the execution ended first." : "It has not begun.";
  return "The log has no command of this step.";
}
