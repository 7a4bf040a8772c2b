import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { barsOf, STATS_SPANS, type Stats, type StatsSpan, stats } from "../api/stats.ts";
import { durationText } from "../parts/time.ts";

/** Playbooks that are listed. */
const LISTED = 5;
/** Bars of the strip beside each. */
const STRIP_BARS = 24;

type PathStats = NonNullable<Stats["paths"]>[number];

/** Those that fail most, or take longest. */
export function PlaybooksToLookAt({ span }: { span: StatsSpan }): ReactNode {
  const [sort, setSort] = useState<"failed" | "slowest">("failed");
  const { data } = useQuery(stats(span, { group: "path", sort }));
  const paths = data?.paths?.slice(0, LISTED) ?? [];
  return (
    <section className="card">
      <header>
        <h2>Playbooks to look at</h2>
        <fieldset className="segments aside">
          <legend className="unseen">Order</legend>
          <button type="button" aria-pressed={sort === "failed"} onClick={() => setSort("failed")}>
            Failing
          </button>
          <button type="button" aria-pressed={sort === "slowest"} onClick={() => setSort("slowest")}>
            Slowest
          </button>
        </fieldset>
      </header>
      {paths.length === 0 ? (
        <p className="pad quiet">
          {data === undefined ? "Loading …" : `No execution ended in ${STATS_SPANS[span].words}.`}
        </p>
      ) : (
        <ul className="lines playbooks">
          {paths.map((path) => (
            <Playbook key={path.path} stats={path} span={span} sort={sort} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Playbook({
  stats: of,
  span,
  sort,
}: {
  stats: PathStats;
  span: StatsSpan;
  sort: "failed" | "slowest";
}): ReactNode {
  const { path, counts, success_rate: rate, duration } = of;
  const { data } = useQuery(stats(span, { path }));
  const count = counts.COMPLETED + counts.FAILED + counts.CANCELLED;
  const failing = data?.steps.toSorted((one, other) => other.failed - one.failed)[0];
  const isFailing = counts.FAILED > 0 && failing !== undefined && failing.failed > 0;
  return (
    <li>
      <Strip data={data} />
      <span>
        <Link to="/entry/$" params={{ _splat: path }} className="plain-link">
          <b>{path}</b>
        </Link>
        <small>
          {count.toLocaleString("en")} {count === 1 ? "run" : "runs"}
          {isFailing && `, ${counts.FAILED} failed, most at ${failing.step}`}
          {duration !== null && ` · p95 ${durationText(duration.p95)}`}
        </small>
      </span>
      <span className="number quiet">
        {sort === "slowest"
          ? duration && durationText(duration.p95)
          : rate === null
            ? "–"
            : `${Math.floor(rate * 100)} %`}
      </span>
    </li>
  );
}

/** Its last runs as a strip of bars. */
function Strip({ data }: { data: Stats | undefined }): ReactNode {
  const bars = data === undefined ? [] : barsOf(data, Math.max(1, Math.floor(data.buckets.length / STRIP_BARS)));
  const most = Math.max(1, ...bars.map(({ completed, failed, cancelled }) => completed + failed + cancelled));
  return (
    <svg className="strip" viewBox={`0 0 ${STRIP_BARS * 5} 20`} preserveAspectRatio="none" aria-hidden="true">
      {bars.slice(-STRIP_BARS).map(({ from, completed, failed, cancelled }, index) => {
        const [all, bad] = [((completed + failed + cancelled) / most) * 20, (failed / most) * 20];
        const height = all === 0 ? 1 : Math.max(3, all);
        return (
          <g key={from}>
            <rect className={all === 0 ? "none" : "good"} x={index * 5} width={3.6} y={20 - height} height={height} />
            {bad > 0 && <rect className="bad" x={index * 5} width={3.6} y={20 - height} height={Math.max(3, bad)} />}
          </g>
        );
      })}
    </svg>
  );
}
