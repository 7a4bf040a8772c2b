import { getRouteApi, Link } from "@tanstack/react-router";
import "../styles/run.css";
import { lazy, type ReactNode, Suspense } from "react";
import type { LiveState } from "../api/live.ts";
import type { Execution } from "../api/types.ts";
import { Labels } from "../parts/labels.tsx";
import { Ago, Lasting } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Status } from "../parts/status.tsx";
import { Actions } from "./actions.tsx";
import { Children } from "./children.tsx";
import { Compare } from "./compare.tsx";
import { Data } from "./data.tsx";
import { Events } from "./events/events.tsx";
import { Callers } from "./lineage.tsx";
import { Lineage } from "./lineage-tree.tsx";
import { Live } from "./live-state.tsx";
import { Steps } from "./steps/steps.tsx";
import { Answer } from "./summary/answer.tsx";
import { EXECUTION_TABS, type ExecutionTab } from "./tabs.ts";
import { Timeline } from "./timeline/timeline.tsx";
import { Travel, usePast } from "./travel/travel.tsx";
import { useLiveExecution } from "./use-live.ts";

const route = getRouteApi("/executions/$executionId");
const Graph = lazy(() => import("./graph/graph.tsx"));
const TITLES: Record<ExecutionTab, string> = {
  steps: "Steps",
  graph: "Graph",
  timeline: "Timeline",
  events: "Event log",
  data: "Inputs and result",
  children: "What it called",
  lineage: "Lineage",
  compare: "Compare",
};

/** One execution: what it does now and why first, then everything that can be looked into. */
export function ExecutionPage(): ReactNode {
  const { executionId } = route.useParams();
  const { tab = "steps", at } = route.useSearch();
  const { detail, live } = useLiveExecution(executionId);
  const past = usePast(detail.data, at);
  if (detail.isError && detail.data === undefined) {
    return <ProblemPanel error={detail.error} again={() => void detail.refetch()} />;
  }
  if (detail.data === undefined) return <p className="quiet">Loading …</p>;
  const execution = detail.data;
  const shown = past.then ?? execution;
  return (
    <div className="stack">
      <Head execution={execution} live={live} />
      {detail.isError && <ProblemPanel error={detail.error} />}
      {at === undefined && <Answer execution={execution} />}
      <Travel execution={execution} past={past} />
      <nav className="tabs" aria-label="Views">
        {EXECUTION_TABS.map((name) => (
          <Link
            key={name}
            from="/executions/$executionId"
            to="."
            search={(before) => ({ ...before, tab: name })}
            aria-current={name === tab ? "page" : undefined}
          >
            {TITLES[name]}
          </Link>
        ))}
      </nav>
      <Suspense fallback={<p className="quiet">Loading …</p>}>
        {tab === "steps" && <Steps execution={shown} />}
        {tab === "graph" && <Graph execution={shown} />}
        {tab === "timeline" && <Timeline execution={shown} />}
        {tab === "events" && <Events execution={execution} />}
        {tab === "data" && <Data execution={shown} />}
        {tab === "children" && <Children execution={execution} />}
        {tab === "lineage" && <Lineage execution={execution} />}
        {tab === "compare" && <Compare execution={execution} />}
      </Suspense>
    </div>
  );
}

function Head({ execution, live }: { execution: Execution; live: LiveState }): ReactNode {
  return (
    <div className="row spread">
      <div className="title">
        {execution.parent_execution_id !== null && (
          <nav aria-label="Who called it">
            <Callers parentId={execution.parent_execution_id} />
          </nav>
        )}
        <h1 className="row">
          <Status of={execution.status} />
          <Link to="/entry/$" params={{ _splat: execution.path }} className="wrap plain-link">
            {execution.path}
          </Link>
          <span className="quiet">v{execution.version}</span>
        </h1>
        <p className="quiet row">
          <code>{execution.execution_id}</code>
          <span>
            started <Ago at={execution.started_at} />, {execution.ended_at === null ? "for" : "took"}{" "}
            <Lasting from={execution.started_at} to={execution.ended_at} />
          </span>
          <StartedBy execution={execution} />
          <Live state={live} />
        </p>
        {Object.keys(execution.labels ?? {}).length > 0 && (
          <p className="row" data-part="labels">
            <Labels labels={execution.labels} />
          </p>
        )}
      </div>
      <Actions execution={execution} />
    </div>
  );
}

/** What started it; a caller is named above the title. */
function StartedBy({ execution: { started_by: by } }: { execution: Execution }): ReactNode {
  if (by === undefined || by.kind === "execution" || (by.kind === "user" && by.id === null)) return null;
  if (by.kind === "rerun" && by.id !== null) {
    return (
      <span>
        a rerun of{" "}
        <Link to="/executions/$executionId" params={{ executionId: by.id }}>
          {by.id}
        </Link>
      </span>
    );
  }
  const name = by.name ?? by.id ?? "";
  return <span>{by.kind === "user" ? `by ${name}` : `by ${by.kind === "mcp" ? "an agent of" : by.kind} ${name}`}</span>;
}
