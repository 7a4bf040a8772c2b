import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { executionDetail, executionList } from "../api/queries.ts";
import type { Execution } from "../api/types.ts";
import { DiffView } from "../parts/json/diff-view.tsx";
import { versionText } from "../parts/labels.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { momentText } from "../parts/time.ts";
import { StepDifferences } from "./step-differences.tsx";

const route = getRouteApi("/executions/$executionId");

/** This execution beside another run of its playbook: inputs, result, and how each step came out. */
export function Compare({ execution }: { execution: Execution }): ReactNode {
  const { against } = route.useSearch();
  return (
    <div className="stack">
      <Chooser execution={execution} against={against} />
      {against === undefined ? (
        <section className="panel">
          <p>
            Choose another run of {execution.path}, and see what was different: inputs, result, steps and their outputs.
          </p>
        </section>
      ) : (
        <Comparison execution={execution} against={against} />
      )}
    </div>
  );
}

function Chooser({ execution, against }: { execution: Execution; against: string | undefined }): ReactNode {
  const navigate = route.useNavigate();
  const runs = useInfiniteQuery({ ...executionList({ path: execution.path }), refetchInterval: false });
  const others =
    runs.data?.pages.flatMap((page) => page.executions).filter((row) => row.execution_id !== execution.execution_id) ??
    [];
  const isListed = against === undefined || others.some((row) => row.execution_id === against);
  return (
    <div className="row">
      <label className="chooser">
        Compare with
        <select
          value={against ?? ""}
          onChange={({ target }) =>
            void navigate({
              search: (before) => ({ ...before, against: target.value === "" ? undefined : target.value }),
              replace: true,
              resetScroll: false,
            })
          }
        >
          <option value="">choose a run …</option>
          {!isListed && <option value={against}>{against}</option>}
          {others.map((row) => (
            <option key={row.execution_id} value={row.execution_id}>
              {momentText(Date.parse(row.started_at)).slice(0, 19)} {row.status.toLowerCase()}{" "}
              {versionText(row.version)} {row.execution_id}
            </option>
          ))}
        </select>
      </label>
      {runs.hasNextPage && (
        <button type="button" disabled={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
          List earlier runs
        </button>
      )}
      {runs.data !== undefined && others.length === 0 && <span className="quiet">No other runs.</span>}
      {runs.isError && <span role="alert">{runs.error.message}</span>}
    </div>
  );
}

function Comparison({ execution, against }: { execution: Execution; against: string }): ReactNode {
  const other = useQuery(executionDetail(against));
  if (other.isError) return <ProblemPanel error={other.error} again={() => void other.refetch()} />;
  if (other.data === undefined) return <p className="quiet">Loading …</p>;
  return (
    <>
      <p>
        From{" "}
        <Link to="/executions/$executionId" params={{ executionId: against }} className="mono">
          {against}
        </Link>{" "}
        ({other.data.status.toLowerCase()}, {other.data.path} {versionText(other.data.version)}) to this one (
        {execution.status.toLowerCase()}, {versionText(execution.version)}):
      </p>
      {other.data.path !== execution.path && <p className="hint tone-warn">That is a run of another playbook.</p>}
      <div className="split even">
        <section className="panel">
          <DiffView label="Inputs" before={other.data.workload} after={execution.workload} />
        </section>
        <section className="panel">
          <DiffView label="Result" before={outcomeOf(other.data)} after={outcomeOf(execution)} />
        </section>
      </div>
      <StepDifferences before={other.data} after={execution} />
    </>
  );
}

function outcomeOf({ result, error }: Execution): unknown {
  return error === null ? result : { error };
}
