import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { barsOf, STATS_SPANS, type Stats, type StatsSpan, stats } from "../../api/stats.ts";
import type { Resource } from "../../api/types.ts";
import { Bars, BarsLegend } from "../../parts/chart/bars.tsx";
import { Figure, percentText } from "../../parts/chart/figure.tsx";
import { durationText } from "../../parts/time.ts";
import { EntryTriggers, NewestVersions, Relations } from "./relations.tsx";
import { RunStrip } from "./run-strip.tsx";

const route = getRouteApi("/entry/$");
/** Steps that are listed. */
const STEPS_MAX = 6;

/** How a playbook does: its last runs, statistics, slow steps, and what it has to do with others. */
export function EntryOverview({ entry }: { entry: Resource }): ReactNode {
  const [span, setSpan] = useState<StatsSpan>("7d");
  const { data, error } = useQuery(stats(span, { path: entry.path }));
  return (
    <div className="stack">
      <RunStrip path={entry.path} />
      <div className="row spread">
        <h2>Statistics</h2>
        <fieldset className="segments">
          <legend className="unseen">Stretch of time</legend>
          {(Object.keys(STATS_SPANS) as StatsSpan[]).map((own) => (
            <button key={own} type="button" aria-pressed={span === own} onClick={() => setSpan(own)}>
              {STATS_SPANS[own].label}
            </button>
          ))}
        </fieldset>
      </div>
      {error !== null && data === undefined ? (
        <p className="quiet">The statistics cannot be read: {error.message}</p>
      ) : (
        <Figures data={data} span={span} />
      )}
      <div className="entry-columns">
        <div className="stack">
          <OverTime data={data} span={span} path={entry.path} />
          <Steps steps={data?.steps ?? []} />
        </div>
        <div className="stack">
          <Relations entry={entry} />
          <EntryTriggers path={entry.path} />
          <NewestVersions entry={entry} />
        </div>
      </div>
    </div>
  );
}

function Figures({ data, span }: { data: Stats | undefined; span: StatsSpan }): ReactNode {
  const { counts, success_rate: rate, duration, waiting } = data?.total ?? {};
  const count = counts && counts.COMPLETED + counts.FAILED + counts.CANCELLED;
  return (
    <div className="figures">
      <Figure
        name={`Runs, ${STATS_SPANS[span].label}`}
        value={count?.toLocaleString("en")}
        note={counts !== undefined && counts.CANCELLED > 0 && `${counts.CANCELLED.toLocaleString("en")} cancelled`}
      />
      <Figure
        name="Success"
        value={data && (rate == null ? "–" : percentText(rate))}
        tone={counts !== undefined && counts.FAILED > 0 ? "bad" : "quiet"}
        note={
          counts !== undefined && (counts.FAILED > 0 ? `${counts.FAILED.toLocaleString("en")} failed` : "none failed")
        }
      />
      <Figure
        name="Duration, p95"
        value={data && (duration == null ? "–" : durationText(duration.p95))}
        note={duration != null && `p50 ${durationText(duration.p50)} · p99 ${durationText(duration.p99)}`}
      />
      <Figure
        name="Waiting for a worker, p95"
        value={data && (waiting == null ? "–" : durationText(waiting.p95))}
        note={waiting != null && `p50 ${durationText(waiting.p50)}`}
      />
    </div>
  );
}

function OverTime({ data, span, path }: { data: Stats | undefined; span: StatsSpan; path: string }): ReactNode {
  const navigate = route.useNavigate();
  const { merged, words } = STATS_SPANS[span];
  const { counts } = data?.total ?? {};
  return (
    <section className="card">
      <header>
        <h2>Runs over time</h2>
        <BarsLegend />
      </header>
      <div className="pad chart">
        {data !== undefined && (
          <Bars
            bars={barsOf(data, merged)}
            height={110}
            label={`Runs that ended in ${words}: ${counts?.COMPLETED} completed, ${counts?.FAILED} failed, ${counts?.CANCELLED} cancelled`}
            onChoose={(from, until) =>
              void navigate({
                to: "/executions",
                search: {
                  q: `path:${path}`,
                  since: new Date(from).toISOString(),
                  until: new Date(until).toISOString(),
                },
              })
            }
          />
        )}
      </div>
    </section>
  );
}

/** Its steps, the slowest first, and how many of their commands failed. */
function Steps({ steps }: { steps: Stats["steps"] }): ReactNode {
  if (steps.length === 0) return null;
  const slowest = Math.max(1, ...steps.map(({ p95 }) => p95));
  return (
    <section className="card">
      <header>
        <h2>Slowest steps</h2>
        <span className="aside">p95, counted by whole hours</span>
      </header>
      <ul className="lines steps">
        {steps.slice(0, STEPS_MAX).map(({ step, count, failed, p95 }) => (
          <li key={step}>
            <span>
              <b>{step}</b>
              <small>
                {count.toLocaleString("en")} {count === 1 ? "time" : "times"}
                {failed > 0 && <span className="failed">, {failed.toLocaleString("en")} failed</span>}
              </small>
            </span>
            <span className="bar tone-busy" aria-hidden="true">
              <span style={{ width: `${(p95 / slowest) * 100}%` }} />
            </span>
            <span className="number">{durationText(p95)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
