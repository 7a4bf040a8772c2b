import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { BulkAnswer } from "../../../../src/schema/api/steering.ts";
import "../../styles/executions.css";
import { api } from "../../api/client.ts";
import { queries } from "../../api/queries.ts";
import { Ago } from "../../parts/now.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { Status } from "../../parts/status.tsx";
import { useTitle } from "../../parts/title.ts";
import { actionText, executionsText } from "./dialog.tsx";
import { filterText } from "./request.ts";

const route = getRouteApi("/executions/bulk/$bulkId");

/** How often its progress is read, milliseconds. */
const LOOK_MS = 1_000;

/** A bulk operation: its progress, what failed, and the buttons that hold, continue or stop it. */
export function BulkPage(): ReactNode {
  const { bulkId } = route.useParams();
  const bulk = useQuery({
    queryKey: ["bulk", bulkId],
    queryFn: ({ signal }) => api("GET /api/executions/bulk/:bulk_id", { params: { bulk_id: bulkId }, signal }),
    refetchInterval: ({ state }) => (state.data?.ended_at == null ? LOOK_MS : false),
  });
  useTitle("Bulk operation");
  if (bulk.data === undefined) {
    return bulk.isError ? (
      <ProblemPanel error={bulk.error} again={() => void bulk.refetch()} />
    ) : (
      <p className="quiet">Loading …</p>
    );
  }
  return (
    <div className="stack">
      <Head bulk={bulk.data} />
      {bulk.isError && <ProblemPanel error={bulk.error} />}
      <Counts bulk={bulk.data} />
      <Failures bulk={bulk.data} />
      <Started bulk={bulk.data} />
    </div>
  );
}

function Head({ bulk }: { bulk: BulkAnswer }): ReactNode {
  const { action, counts, status, by, created_at: createdAt, ended_at: endedAt, filter, options } = bulk;
  const reason = options["reason"];
  return (
    <>
      <div className="row spread">
        <h1>{titleOf(action, executionsText(counts.matched))}</h1>
        <Controls bulk={bulk} />
      </div>
      <p className="row">
        <Status of={status.toUpperCase()} />
        <span>
          by {by}, <Ago at={createdAt} />
          {endedAt !== null && (
            <>
              , ended <Ago at={endedAt} />
            </>
          )}
        </span>
      </p>
      {typeof reason === "string" && <p className="wrap">Reason: {reason}</p>}
      <p className="quiet wrap">Filter: {filterText(filter)}</p>
    </>
  );
}

function Controls({ bulk: { bulk_id: bulkId, status, ended_at: endedAt } }: { bulk: BulkAnswer }): ReactNode {
  const change = useMutation({
    mutationFn: (what: "pause" | "resume" | "cancel") =>
      api(`POST /api/executions/bulk/:bulk_id/${what}`, { params: { bulk_id: bulkId } }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["bulk", bulkId] }),
  });
  if (endedAt !== null || status === "cancelled") return null;
  const goesOn = status === "running";
  return (
    <div className="row">
      {change.isError && (
        <span role="alert" className="tone-bad">
          {change.error.message}
        </span>
      )}
      <button type="button" disabled={change.isPending} onClick={() => change.mutate(goesOn ? "pause" : "resume")}>
        {goesOn ? "Hold" : "Continue"}
      </button>
      <button type="button" className="risky" disabled={change.isPending} onClick={() => change.mutate("cancel")}>
        Stop
      </button>
    </div>
  );
}

/** What was done, by action; after a number. */
const DONE = {
  cancel: "cancelled",
  pause: "paused",
  resume: "resumed",
  rerun: "started again",
  backfill: "started",
} as const;

function titleOf(action: BulkAnswer["action"], executions: string): string {
  return action === "backfill" ? `Start ${executions}` : actionText(action, executions);
}

function Counts({ bulk: { action, status, counts } }: { bulk: BulkAnswer }): ReactNode {
  const { matched, done, failed, skipped } = counts;
  const left = matched - done - failed - skipped;
  const isEnded = status === "completed" || status === "cancelled";
  return (
    <>
      <progress value={matched - left} max={Math.max(1, matched)} aria-label="Done so far" />
      <p role="status">
        <strong>{done.toLocaleString("en")}</strong> {DONE[action]}
        {failed > 0 && <span className="tone-bad">, {failed.toLocaleString("en")} failed</span>}
        {skipped > 0 && `, ${skipped.toLocaleString("en")} skipped`}
        {left > 0 && `, ${left.toLocaleString("en")} ${isEnded ? "not reached" : "to go"}`}
      </p>
    </>
  );
}

function Failures({ bulk: { failures, counts } }: { bulk: BulkAnswer }): ReactNode {
  if (failures.length === 0) return null;
  return (
    <section className="stack" aria-labelledby="bulk-failures">
      <h2 id="bulk-failures">What failed</h2>
      {failures.map(({ execution_id: id, due_at: due, code, message }) => (
        <p key={id ?? due} className="refusal tone-bad wrap">
          {id === undefined ? due : <ToExecution id={id} />} {message} <span className="quiet">({code})</span>
        </p>
      ))}
      {counts.failed > failures.length && <p className="quiet">and {counts.failed - failures.length} more</p>}
    </section>
  );
}

function Started({ bulk }: { bulk: BulkAnswer }): ReactNode {
  const { action, bulk_id: bulkId, options, started = [], counts } = bulk;
  if (started.length === 0) return null;
  const all = action === "backfill" ? `by:trigger by_id:${options["trigger_id"]}` : `by:bulk by_id:${bulkId}`;
  return (
    <section className="stack" aria-labelledby="bulk-started">
      <h2 id="bulk-started">New executions</h2>
      <p>
        <Link to="/executions" search={{ q: all }}>
          {counts.done === 1 ? "The new execution" : `All ${counts.done.toLocaleString("en")} new executions`}
        </Link>
      </p>
      <ul className="plan">
        {started.map(({ execution_id: id, due_at: due, new_execution_id: next }) => (
          <li key={next}>
            <ToExecution id={next} /> <span className="quiet">{id === undefined ? `for ${due}` : "repeats"}</span>{" "}
            {id !== undefined && <ToExecution id={id} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function ToExecution({ id }: { id: string }): ReactNode {
  return (
    <Link to="/executions/$executionId" params={{ executionId: id }} className="mono">
      {id}
    </Link>
  );
}
