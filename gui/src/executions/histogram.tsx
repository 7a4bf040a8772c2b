import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { readExecutionQuery } from "../../../src/schema/rules/execution-query.ts";
import { barsOf, STATS_SPANS, type StatsSpan, stats } from "../api/stats.ts";
import { Bars } from "../parts/chart/bars.tsx";
import type { ExecutionFilters } from "./filter/queries.ts";

/** What the statistics know of a search. */
const KNOWN: ReadonlySet<string> = new Set(["path", "roots_only"]);

/** What ended over the time of the list, where statistics know what it is narrowed to: playbooks, and time. */
export function Histogram({ filters }: { filters: ExecutionFilters }): ReactNode {
  const about = aboutOf(filters);
  const { data, isError } = useQuery({
    ...stats(about?.span ?? "24h", { path: about?.path }),
    enabled: about !== undefined,
  });
  const navigate = useNavigate({ from: "/executions" });
  if (about === undefined || isError) return null;
  // Its place is kept, so that the list does not move down when it comes.
  if (data === undefined) return <section className="card histogram" aria-hidden="true" />;
  const { counts } = data.total;
  const { words, merged } = STATS_SPANS[about.span];
  if (counts.COMPLETED + counts.FAILED + counts.CANCELLED === 0)
    return <section className="card histogram quiet">Nothing ended in {words}.</section>;
  return (
    <section className="card histogram">
      <Bars
        bars={barsOf(data, merged)}
        height={52}
        label={`What ended in ${words}: ${counts.COMPLETED} completed, ${counts.FAILED} failed, ${counts.CANCELLED} cancelled`}
        onChoose={(from, until) => {
          const [since, to] = [new Date(from).toISOString(), new Date(until).toISOString()];
          void navigate({ search: (before) => ({ ...before, since, until: to }) });
        }}
      />
    </section>
  );
}

/** The statistics that fit the list; undefined where none do. */
function aboutOf({ q, path, parent, since, until }: ExecutionFilters): { span: StatsSpan; path?: string } | undefined {
  if (path !== undefined || parent !== undefined || until !== undefined) return undefined;
  const span = since === undefined ? "24h" : since === "15m" ? "1h" : since;
  if (!(span in STATS_SPANS)) return undefined;
  const { filter } = readExecutionQuery(q ?? "", Date.now());
  if (filter === undefined || Object.keys(filter).some((name) => !KNOWN.has(name))) return undefined;
  return { span: span as StatsSpan, ...(filter.path !== undefined && { path: filter.path }) };
}
