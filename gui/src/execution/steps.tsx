import { getRouteApi, Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef } from "react";
import type { Execution, Step } from "../api/types.ts";
import { Lasting } from "../parts/now.tsx";
import { Status } from "../parts/status.tsx";
import { loopText } from "./answer.tsx";
import { StepPanel } from "./step-panel.tsx";

const route = getRouteApi("/executions/$executionId");
const ROW_PX = 32;

/** Every step in the order in which they came to be, and the one that is looked at. */
export function Steps({ execution }: { execution: Execution }): ReactNode {
  const { step: chosenName } = route.useSearch();
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: execution.steps.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 15,
  });
  const chosen = execution.steps.find(({ name }) => name === chosenName);
  return (
    <div className="split">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <section className="list" ref={scroller} aria-label="Steps" tabIndex={0}>
        <div style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start }) => {
            const step = execution.steps[index];
            if (step === undefined) return null;
            return (
              <div key={step.name} className="at" style={{ top: start }}>
                <StepRow step={step} isChosen={step.name === chosenName} />
              </div>
            );
          })}
        </div>
      </section>
      <section className="panel scroll">
        {chosen === undefined ? (
          <p className="quiet">Choose a step to see its attempts, inputs and results.</p>
        ) : (
          <StepPanel key={chosen.name} execution={execution} step={chosen} />
        )}
      </section>
    </div>
  );
}

function StepRow({ step, isChosen }: { step: Step; isChosen: boolean }): ReactNode {
  return (
    <Link
      from="/executions/$executionId"
      to="."
      search={(before) => ({ ...before, step: step.name })}
      replace
      className="step-row"
      aria-current={isChosen ? "true" : undefined}
    >
      <Status of={step.status} />
      <span className="name" title={step.name}>
        {step.name}
      </span>
      <span className="quiet">
        {step.loop !== undefined && loopText(step.loop)}
        {step.runs > 1 && ` ${step.runs} runs`}
        {step.attempts > 1 && ` attempt ${step.attempts}`}
      </span>
      <span className="number quiet">
        {step.started_at !== null && <Lasting from={step.started_at} to={step.ended_at} />}
      </span>
    </Link>
  );
}
