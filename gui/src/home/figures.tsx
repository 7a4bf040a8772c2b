import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { overview } from "../api/queries.ts";
import { STATS_SPANS, type StatsSpan, stats } from "../api/stats.ts";
import type { Overview } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { Figure, percentText } from "../parts/chart/figure.tsx";
import { durationText } from "../parts/time.ts";

/** The figures of a stretch of time, and how they were in the one before. */
export function Figures({ span }: { span: StatsSpan }): ReactNode {
  const { data } = useQuery(stats(span));
  const before = useQuery(stats(span, {}, 1)).data;
  const count = data && countOf(data.total.counts);
  const { label, unit } = STATS_SPANS[span];
  const failed = data?.total.counts.FAILED ?? 0;
  const duration = data?.total.duration;
  return (
    <div className="figures">
      <Figure
        name={`Executions, ${label}`}
        value={count?.toLocaleString("en")}
        note={count !== undefined && before !== undefined && changeText(count, countOf(before.total.counts), unit)}
      />
      <Figure
        name="Success"
        value={data && (data.total.success_rate === null ? "–" : percentText(data.total.success_rate))}
        tone={failed > 0 ? "bad" : "quiet"}
        note={
          failed > 0 ? (
            <Link to="/executions" search={{ status: "FAILED", since: span === "30d" ? undefined : span }}>
              {failed.toLocaleString("en")} failed
            </Link>
          ) : (
            "none failed"
          )
        }
      />
      <Figure
        name="Duration, p95"
        value={data && (duration == null ? "–" : durationText(duration.p95))}
        note={duration != null && `p50 ${durationText(duration.p50)}`}
      />
      <Waiting p95={data?.total.waiting?.p95} />
    </div>
  );
}

/** How long commands wait for a worker, and who is there to take them. */
function Waiting({ p95 }: { p95: number | undefined }): ReactNode {
  const may = useAllowed("view_operations").allowed;
  const { data } = useQuery({ ...overview(), enabled: may });
  const isBad = data !== undefined && data.verdict.level !== "good";
  return (
    <Figure
      name="Waiting for a worker, p95"
      value={p95 === undefined ? "–" : durationText(p95)}
      tone={isBad ? "bad" : "good"}
      note={data !== undefined && <Link to="/operations">{workersText(data)}</Link>}
    />
  );
}

/** `3 workers · 21 of 64 slots busy`, or what is wrong. */
function workersText({ workers, queue, verdict }: Overview): string {
  if (verdict.level !== "good") return verdict.what;
  const there = (workers?.items ?? []).filter(({ status }) => status === "ready" || status === "draining");
  const [busy, slots] = [sumOf(there, "running"), sumOf(there, "capacity")];
  const waiting = queue?.waiting.count ?? 0;
  return [
    there.length === 1 ? "1 worker" : `${there.length} workers`,
    `${busy} of ${slots} slots busy`,
    ...(waiting > 0 ? [`${waiting}${queue?.waiting.more ? "+" : ""} waiting`] : []),
  ].join(" · ");
}

function sumOf<Name extends string>(items: readonly Record<Name, number>[], name: Name): number {
  return items.reduce((before, item) => before + item[name], 0);
}

function countOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((before, count) => before + count, 0);
}

function changeText(count: number, before: number, unit: string): string {
  if (before === 0) return `none in the ${unit} before`;
  const change = Math.round((count / before - 1) * 100);
  return change === 0
    ? `as many as in the ${unit} before`
    : `${change > 0 ? "+" : "−"}${Math.abs(change)} % on the ${unit} before`;
}
