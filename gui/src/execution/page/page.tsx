import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, memo, type ReactNode, Suspense, useDeferredValue } from "react";
import "../../styles/run.css";
import "../../styles/run-page.css";
import type { Execution } from "../../api/types.ts";
import { ProblemPanel } from "../../parts/problem.tsx";
import { Compare } from "../compare.tsx";
import { Data } from "../data.tsx";
import { Events } from "../events/events.tsx";
import { Head } from "../head/head.tsx";
import { Lineage } from "../lineage-tree.tsx";
import { Answer } from "../summary/answer.tsx";
import { EXECUTION_TABS, type ExecutionTab } from "../tabs.ts";
import { Trace } from "../trace/trace.tsx";
import type { Moment } from "../traced/use-traced.ts";
import { Replay, ReplayButton, usePast } from "../travel/travel.tsx";
import { useLiveExecution } from "../use-live.ts";

const route = getRouteApi("/executions/$executionId");
const Graph = lazy(() => import("../graph/graph.tsx"));
const Files = lazy(() => import("../files/files.tsx"));
const Log = lazy(() => import("../log/log.tsx"));
const TITLES: Record<ExecutionTab, string> = {
  trace: "Trace",
  graph: "Graph",
  log: "Log",
  data: "Data",
  files: "Files",
  events: "Events",
  compare: "Compare",
  lineage: "Lineage",
};

/** One execution: the answer first, then everything that can be looked into. What is chosen in one view is chosen in all. */
export function ExecutionPage(): ReactNode {
  const { executionId } = route.useParams();
  const { tab = "trace", at } = route.useSearch();
  const { detail, live } = useLiveExecution(executionId);
  const past = usePast(detail.data, at);
  if (detail.isError && detail.data === undefined) {
    return <ProblemPanel error={detail.error} again={() => void detail.refetch()} />;
  }
  if (detail.data === undefined) return <p className="quiet">Loading …</p>;
  const execution = detail.data;
  const shown = past.then ?? execution;
  const { moment } = past;
  return (
    <div className="run-page">
      <Head execution={execution} live={live} />
      {detail.isError && <ProblemPanel error={detail.error} />}
      {at === undefined && <Answer execution={execution} />}
      <div className="run-tabs">
        <nav className="tabs" aria-label="Views">
          {EXECUTION_TABS.map((name) => (
            <Link
              key={name}
              from="/executions/$executionId"
              to="."
              search={(before) => ({ ...before, tab: name })}
              resetScroll={false}
              aria-current={name === tab ? "page" : undefined}
            >
              {TITLES[name]}
            </Link>
          ))}
        </nav>
        {at === undefined && <ReplayButton execution={execution} />}
      </div>
      {at !== undefined && <Replay execution={execution} past={past} at={at} />}
      <Views tab={tab} execution={execution} shown={shown} moment={moment} />
    </div>
  );
}

interface ViewProps {
  tab: ExecutionTab;
  execution: Execution;
  /** As it is looked at: now, or at a moment of the past. */
  shown: Execution;
  moment: Moment | undefined;
}

/**
 * The chosen view. One of thousands of rows is made in slices: after the answer, which is drawn at once, and while what was pressed shows
 * that it was.
 */
function Views({ tab, ...of }: ViewProps): ReactNode {
  const drawn = useDeferredValue<ExecutionTab | null>(tab, null);
  return drawn !== null && <View tab={drawn} {...of} />;
}

/** One view of an execution. Another look at the same execution's tabs or answer leaves it alone. */
const View = memo(({ tab, execution, shown, moment }: ViewProps): ReactNode => {
  const id = execution.execution_id;
  return (
    <Suspense fallback={<p className="quiet">Loading …</p>}>
      {tab === "trace" && <Trace key={id} execution={shown} moment={moment} />}
      {tab === "graph" && <Graph key={id} execution={shown} moment={moment} />}
      {tab === "log" && <Log key={id} execution={shown} moment={moment} />}
      {tab === "data" && <Data execution={shown} />}
      {tab === "files" && <Files execution={execution} />}
      {tab === "events" && <Events execution={execution} />}
      {tab === "compare" && <Compare execution={execution} />}
      {tab === "lineage" && <Lineage execution={execution} />}
    </Suspense>
  );
});
