import { getRouteApi, Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { Execution, Step } from "../../api/types.ts";
import { Lasting } from "../../parts/now.tsx";
import { Status } from "../../parts/status.tsx";
import { loopText } from "../summary/answer.tsx";
import { mostTelling } from "../summary/most-telling.ts";
import { StepPanel } from "./panel.tsx";

const route = getRouteApi("/executions/$executionId");
const ROW_PX = 32;
/** Steps from which on there is something to look for among them. */
const FILTERED_MIN = 8;

/** All steps in the order in which they started, and the selected one. */
export function Steps({ execution }: { execution: Execution }): ReactNode {
  const search = route.useSearch();
  const [filter, setFilter] = useState("");
  const shown = useMemo(() => filtered(execution.steps, filter), [execution.steps, filter]);
  const chosenName = search.step ?? mostTelling(execution.steps);
  const chosen = execution.steps.find(({ name }) => name === chosenName);
  return (
    <div className="split steps">
      <div className="stack side">
        {execution.steps.length >= FILTERED_MIN && (
          <div className="row">
            <input
              data-filter
              className="grow"
              value={filter}
              placeholder="Name, or failed, running …"
              aria-label="Find a step by its name or state"
              onChange={({ target }) => setFilter(target.value)}
            />
            <span className="quiet number" role="status">
              {shown.length} of {execution.steps.length}
            </span>
          </div>
        )}
        <StepList steps={shown} chosenName={chosenName} isOver={execution.ended_at !== null} />
      </div>
      <section className="panel scroll" aria-label="Step">
        {chosen === undefined ? (
          <p className="quiet">
            {search.step === undefined
              ? "Choose a step to see its attempts, inputs and results."
              : `There is no step ${search.step} here.`}
          </p>
        ) : (
          <StepPanel key={chosen.name} execution={execution} step={chosen} />
        )}
      </section>
    </div>
  );
}

function StepList({
  steps,
  chosenName,
  isOver,
}: {
  steps: readonly Step[];
  chosenName: string | undefined;
  isOver: boolean;
}): ReactNode {
  const scroller = useRef<HTMLElement>(null);
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 15,
  });
  const index = steps.findIndex(({ name }) => name === chosenName);
  // A user who opens a link finds the step in sight; later changes of the list do not move it.
  const isPlaced = useRef(false);
  useEffect(() => {
    if (isPlaced.current || index < 0) return;
    isPlaced.current = true;
    rows.scrollToIndex(index, { align: "auto" });
  }, [index, rows]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section className="list" ref={scroller} aria-label="Steps" tabIndex={0}>
      <div style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((item) => {
          const step = steps[item.index];
          if (step === undefined) return null;
          return (
            <div key={step.name} className="at" style={{ top: item.start }}>
              <StepRow step={step} isChosen={step.name === chosenName} isOver={isOver} />
            </div>
          );
        })}
      </div>
    </section>
  );
}

function filtered(steps: readonly Step[], filter: string): readonly Step[] {
  const text = filter.trim().toLowerCase();
  if (text === "") return steps;
  return steps.filter(({ name, status, loop }) => {
    if (status.toLowerCase() === text || name.toLowerCase().includes(text)) return true;
    return text === "failed" && (loop?.failed ?? 0) > 0;
  });
}

function StepRow({ step, isChosen, isOver }: { step: Step; isChosen: boolean; isOver: boolean }): ReactNode {
  return (
    <Link
      from="/executions/$executionId"
      to="."
      search={(before) => ({
        ...before,
        tab: "steps" as const,
        step: step.name,
        command: undefined,
        failed: undefined,
        run: undefined,
        beside: undefined,
      })}
      replace
      resetScroll={false}
      className="step-row"
      aria-current={isChosen ? "true" : undefined}
    >
      <Status of={step.status} isOver={isOver} />
      <span className="name" title={step.name}>
        {step.name}
      </span>
      <span className="quiet">
        {step.reused_from !== undefined && "reused "}
        {step.overridden !== undefined && "by hand "}
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
