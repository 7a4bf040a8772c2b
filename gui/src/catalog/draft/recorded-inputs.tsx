import { useInfiniteQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { attemptsOf } from "../../execution/details/attempts.ts";
import { RenderedView } from "../../execution/details/rendered-view.tsx";
import { inOrder, stepEvents } from "../../execution/details/step-events.ts";
import "../../styles/run-page.css";

/** The inputs that a step had in a run, as its tasks were sent them; of a loop those of one item. Nothing for a step that no worker took there. */
export function RecordedInputs({ executionId, step }: { executionId: string; step: string }): ReactNode {
  const [isShown, setIsShown] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setIsShown(currentTarget.open)}>
      <summary>Inputs it was sent</summary>
      {isShown && <Inputs executionId={executionId} step={step} />}
    </details>
  );
}

function Inputs({ executionId, step }: { executionId: string; step: string }): ReactNode {
  const pages = useInfiniteQuery(stepEvents({ executionId, step }));
  const attempt = useMemo(
    () => attemptsOf(inOrder(pages.data?.pages), step).find(({ tasks }) => tasks.length > 0),
    [pages.data, step],
  );
  if (pages.isPending) return <p className="quiet">Loading …</p>;
  if (pages.isError) {
    return (
      <p role="alert" className="wrap">
        {pages.error.message}
      </p>
    );
  }
  if (attempt === undefined) return <p className="quiet">No task of it ran there.</p>;
  const { commandId, attempt: claim, iteration } = attempt;
  return (
    <>
      {iteration !== undefined && <p className="quiet">Item {iteration} of its loop:</p>}
      <RenderedView request={{ executionId, commandId, attempt: claim, iteration }} />
    </>
  );
}
