import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { Execution, Step } from "../../api/types.ts";
import { Ago } from "../../parts/now.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { StateSign } from "../state-sign.tsx";
import { countText } from "../traced/count-text.ts";
import type { Moment } from "../traced/use-traced.ts";
import { attemptsOf } from "./attempts.ts";
import { inOrder, stepEvents } from "./step-events.ts";

/** Items that failed and are listed before one asks for more. */
const LISTED_MAX = 50;

/** How far a loop is, and which of its items failed; one of them is looked into when it is chosen. */
export function LoopSummary({
  execution,
  step,
  moment,
}: {
  execution: Execution;
  step: Step;
  moment: Moment | undefined;
}): ReactNode {
  const { execution_id: executionId } = execution;
  const { total, done, failed } = step.loop ?? { total: 0, done: 0, failed: 0 };
  const query = { executionId, step: step.name, isFailed: true };
  const pages = useInfiniteQuery({ ...stepEvents(query), enabled: failed > 0 });
  const items = useMemo(() => {
    const events = inOrder(pages.data?.pages).filter(
      ({ event_id }) => moment === undefined || event_id <= moment.event,
    );
    return attemptsOf(events, step.name).sort((one, other) => (one.iteration ?? 0) - (other.iteration ?? 0));
  }, [pages.data, step.name, moment]);
  return (
    <>
      <p>
        {countText(done)} of {total === null ? "an unknown number of" : countText(total)} items done
        {failed > 0 && `, ${countText(failed)} failed`}.
      </p>
      {moment === undefined && step.overridden_iterations !== undefined && (
        <EndedByHand iterations={step.overridden_iterations} />
      )}
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {items.length > 0 && (
        <>
          <h3>Items that failed</h3>
          <ul className="items" aria-label="Items that failed">
            {items.slice(0, LISTED_MAX).map(({ key, iteration, commandId, message }) => (
              <li key={key}>
                <StateSign of="FAILED" />
                <Link
                  from="/executions/$executionId"
                  to="."
                  search={(before) => ({ ...before, command: commandId, iteration: String(iteration ?? 0) })}
                  replace
                  resetScroll={false}
                >
                  Item {countText(iteration ?? 0)}
                </Link>
                <span className="quiet">{message}</span>
              </li>
            ))}
          </ul>
          {items.length > LISTED_MAX && (
            <p className="quiet">and {countText(items.length - LISTED_MAX)} more: the trace has all of them.</p>
          )}
        </>
      )}
      <p className="quiet">Unfold the loop in the trace and choose an item to see its inputs, result and log.</p>
    </>
  );
}

const ENDED = { skip: "skipped", complete: "completed", fail: "failed" } as const;

/** Items that people have ended: the newest hundred, as the server gives them. */
function EndedByHand({ iterations }: { iterations: NonNullable<Step["overridden_iterations"]> }): ReactNode {
  return (
    <>
      <h3>Items ended by hand</h3>
      <ul className="items" aria-label="Items ended by hand">
        {iterations.map(({ iteration, action, by, reason, at }) => (
          <li key={iteration}>
            <span>
              Item {countText(iteration)} {ENDED[action]} by {by ?? "hand"}, <Ago at={at} />
            </span>
            <span className="quiet wrap">{reason}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
