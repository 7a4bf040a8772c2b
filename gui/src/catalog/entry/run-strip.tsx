import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { executionList } from "../../api/queries.ts";
import type { ExecutionItem } from "../../api/types.ts";
import { useNow } from "../../parts/now.tsx";
import { agoText, durationText } from "../../parts/time.ts";

/** Runs that are shown, the newest at the right. */
const SHOWN = 60;
/** Height of the lowest bar, per cent: the shortest run is seen too. */
const LOWEST = 14;

/** The last runs of a path as a strip of bars: how each ended by its colour, how long it took by its height. Each leads to its run. */
export function RunStrip({ path }: { path: string }): ReactNode {
  const { data } = useInfiniteQuery(executionList({ path }));
  const now = useNow();
  // Drafts are no runs of what is registered.
  const registered = data?.pages[0]?.executions.filter(({ version }) => version > 0) ?? [];
  const rows = registered.slice(0, SHOWN).toReversed();
  const longest = Math.max(1, ...rows.map((row) => tookMs(row, now)));
  return (
    <section className="card">
      <header>
        <h2>Last runs</h2>
        <Link to="/executions" search={{ q: `path:${path}` }} className="aside">
          All runs
        </Link>
      </header>
      {data === undefined ? (
        <p className="pad quiet">Loading …</p>
      ) : rows.length === 0 ? (
        <p className="pad quiet">
          No runs yet.{" "}
          <Link from="/entry/$" to="." search={(before) => ({ ...before, tab: "run" })}>
            Run it
          </Link>
          , or <code>flow run {path} --runtime server</code>
        </p>
      ) : (
        <ol className="pad runs-strip">
          {rows.map((row) => (
            <Run key={row.execution_id} row={row} now={now} longest={longest} />
          ))}
        </ol>
      )}
    </section>
  );
}

const TONES: Readonly<Record<string, string>> = {
  COMPLETED: "good",
  FAILED: "bad",
  CANCELLED: "quiet",
  RUNNING: "busy",
  PENDING: "busy",
  PAUSED: "warn",
};

function Run({ row, now, longest }: { row: ExecutionItem; now: number; longest: number }): ReactNode {
  const { execution_id: executionId, status, started_at: at, version, error } = row;
  const took = tookMs(row, now);
  const about = [
    `${status.toLowerCase()} after ${durationText(took)}`,
    `${agoText(Date.parse(at), now)}, v${version}`,
    ...(error === null ? [] : [error.message]),
  ].join("\n");
  // The root: what takes a hundred times as long is ten times as high.
  const height = LOWEST + (100 - LOWEST) * Math.sqrt(took / longest);
  return (
    <li>
      <Link
        to="/executions/$executionId"
        params={{ executionId }}
        className={`tone-${TONES[status] ?? "quiet"}`}
        title={about}
        aria-label={`Run ${executionId}: ${about}`}
      >
        <span style={{ height: `${height}%` }} />
      </Link>
    </li>
  );
}

function tookMs({ started_at: from, ended_at: to }: ExecutionItem, now: number): number {
  return Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from));
}
