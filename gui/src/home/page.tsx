import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import "../styles/home.css";
import { barsOf, STATS_SPANS, type StatsSpan, stats } from "../api/stats.ts";
import { Bars, BarsLegend } from "../parts/chart/bars.tsx";
import { useTitle } from "../parts/title.ts";
import { Figures } from "./figures.tsx";
import { FirstVisit } from "./first-visit.tsx";
import { Needs, useNeeds } from "./needs.tsx";
import { NextFires } from "./next.tsx";
import { PlaybooksToLookAt } from "./playbooks.tsx";
import { useIsEmpty } from "./queries.ts";

const route = getRouteApi("/");

/** What a person who comes in wants to know: is something wrong, and what waits for me. */
export function HomePage(): ReactNode {
  const isEmpty = useIsEmpty();
  const { span = "24h" } = route.useSearch();
  const needs = useNeeds();
  useTitle("");
  if (isEmpty === undefined) return <p className="quiet">Loading …</p>;
  if (isEmpty) return <FirstVisit />;
  return (
    <div className="stack home">
      <div className="row spread">
        <div className="row greeting">
          <h1>{greeting(new Date().getHours())}</h1>
          <span className="quiet" role="status">
            {needs.length === 0
              ? "Nothing needs you."
              : `${needs.length === 1 ? "1 thing needs" : `${needs.length} things need`} you.`}
          </span>
        </div>
        <SpanChoice span={span} />
      </div>
      <Figures span={span} />
      <div className="home-columns">
        <div className="stack">
          <OverTime span={span} />
          <PlaybooksToLookAt span={span} />
        </div>
        <div className="stack">
          <Needs needs={needs} />
          <NextFires />
        </div>
      </div>
    </div>
  );
}

/** Over how long the figures are. */
function SpanChoice({ span }: { span: StatsSpan }): ReactNode {
  const navigate = route.useNavigate();
  return (
    <fieldset className="segments">
      <legend className="unseen">Stretch of time</legend>
      {(Object.keys(STATS_SPANS) as StatsSpan[]).map((own) => (
        <button
          key={own}
          type="button"
          aria-pressed={span === own}
          title={STATS_SPANS[own].words}
          onClick={() => void navigate({ search: { span: own === "24h" ? undefined : own }, replace: true })}
        >
          {STATS_SPANS[own].label}
        </button>
      ))}
    </fieldset>
  );
}

function OverTime({ span }: { span: StatsSpan }): ReactNode {
  const { data, error } = useQuery(stats(span));
  const navigate = useNavigate();
  const { merged, words } = STATS_SPANS[span];
  const { counts } = data?.total ?? {};
  return (
    <section className="card">
      <header>
        <h2>Executions over time</h2>
        <BarsLegend />
      </header>
      <div className="pad chart">
        {data === undefined ? (
          <p className="quiet">{error === null ? "Loading …" : `The statistics cannot be read: ${error.message}`}</p>
        ) : (
          <Bars
            bars={barsOf(data, merged)}
            height={168}
            label={`Executions that ended in ${words}: ${counts?.COMPLETED} completed, ${counts?.FAILED} failed, ${counts?.CANCELLED} cancelled`}
            onChoose={(from, until) =>
              void navigate({
                to: "/executions",
                search: { since: new Date(from).toISOString(), until: new Date(until).toISOString() },
              })
            }
          />
        )}
      </div>
    </section>
  );
}

function greeting(hour: number): string {
  if (hour < 5) return "Good night";
  if (hour < 12) return "Good morning";
  return hour < 18 ? "Good afternoon" : "Good evening";
}
