import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { executionDetail } from "../../api/queries.ts";
import { JsonView } from "../../parts/json/view.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { isFinal, Status } from "../../parts/status.tsx";
import { durationText } from "../../parts/time.ts";

/** How often an execution is looked at until it ends, milliseconds. */
const LOOK_MS = 1_000;

/** An execution beside what started it: how far it is, its result or its error, and the way to its page. */
export function RunOutcome({ executionId }: { executionId: string }): ReactNode {
  const { data, error, refetch } = useQuery({
    ...executionDetail(executionId),
    refetchInterval: ({ state }) => (state.data !== undefined && isFinal(state.data.status) ? false : LOOK_MS),
  });
  if (error !== null) return <ProblemPanel error={error} again={() => void refetch()} />;
  const steps = data?.steps.filter(({ runs }) => runs > 0) ?? [];
  return (
    <section className="stack tight" aria-live="polite" aria-label="Outcome">
      <p className="row">
        <Status of={data?.status ?? "PENDING"} />
        {data?.duration_ms != null && <span className="number quiet">{durationText(data.duration_ms)}</span>}
        {steps.length > 0 && (
          <span className="quiet wrap">
            {steps.map(({ name, status }) => (status === "FAILED" ? `${name} (failed)` : name)).join(" → ")}
          </span>
        )}
        {/* In a tab of its own: what is written here is not saved. */}
        <Link to="/executions/$executionId" params={{ executionId }} target="_blank">
          Execution {executionId}
        </Link>
      </p>
      {data?.error != null && (
        <div className="panel tone-bad">
          <p className="wrap">{data.error.message}</p>
          <p className="quiet">
            <code>{data.error.code}</code>
          </p>
        </div>
      )}
      {data !== undefined && isFinal(data.status) && data.error === null && (
        <JsonView key={executionId} label="Result" value={data.result ?? null} />
      )}
    </section>
  );
}
