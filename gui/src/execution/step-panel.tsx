import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { Execution, Step } from "../api/types.ts";
import { executionEvents } from "../app/queries.ts";
import { JsonView } from "../parts/json-view.tsx";
import { Status } from "../parts/status.tsx";
import { durationText, momentText } from "../parts/time.ts";
import { attemptsOf } from "./attempts.ts";

/** One step: its attempts above each other, newest first, with what each task gave. */
export function StepPanel({ execution, step }: { execution: Execution; step: Step }): ReactNode {
  const pages = useInfiniteQuery(executionEvents(execution.execution_id, undefined));
  const events = useMemo(() => pages.data?.pages.flatMap((page) => page.events) ?? [], [pages.data]);
  const attempts = useMemo(() => attemptsOf(events, step.name), [events, step.name]);
  return (
    <div className="stack">
      <h2 className="row">
        <Status of={step.status} /> <span className="wrap">{step.name}</span>
      </h2>
      {step.error != null && (
        <p className="wrap tone-bad">
          <code>{step.error.code}</code> {step.error.message}
        </p>
      )}
      {attempts.map((attempt) => (
        <article
          key={attempt.key}
          className={`attempt tone-${attempt.failed ? "bad" : attempt.endedAt === undefined ? "busy" : "good"}`}
        >
          <h3>
            Attempt {attempt.attempt}
            {attempt.iterations !== undefined && `, iterations ${attempt.iterations}`}
          </h3>
          <dl className="facts">
            <dt>Waited</dt>
            <dd>
              {attempt.claimedAt === undefined ? "still waits" : durationText(attempt.claimedAt - attempt.issuedAt)}
            </dd>
            {attempt.worker !== undefined && (
              <>
                <dt>Worker</dt>
                <dd>{attempt.worker}</dd>
              </>
            )}
            <dt>Issued</dt>
            <dd>{momentText(attempt.issuedAt)}</dd>
            {attempt.claimedAt !== undefined && attempt.endedAt !== undefined && (
              <>
                <dt>Ran</dt>
                <dd>{durationText(attempt.endedAt - attempt.claimedAt)}</dd>
              </>
            )}
          </dl>
          {attempt.tasks.map((task) => (
            <JsonView key={task.eventId} label={`${task.name}, run ${task.run}: ${task.status}`} value={task.shown} />
          ))}
        </article>
      ))}
      {pages.hasNextPage && (
        <button type="button" onClick={() => void pages.fetchNextPage()}>
          Look further in the log
        </button>
      )}
      <Link
        from="/executions/$executionId"
        to="."
        search={(before) => ({ ...before, tab: "events" as const, step: step.name })}
      >
        Its events
      </Link>
    </div>
  );
}
