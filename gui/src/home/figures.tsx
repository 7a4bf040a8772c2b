import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { overview } from "../api/queries.ts";
import type { Overview } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { recentCounts } from "./queries.ts";

/** How many executions began in the last 24 hours, how they are, and who is there to work. */
export function Figures(): ReactNode {
  const { data } = useQuery(recentCounts());
  const counts = data?.counts;
  const [failed, completed] = [counts?.FAILED?.count ?? 0, counts?.COMPLETED?.count ?? 0];
  return (
    <div className="figures">
      <Figure
        name="Executions, 24 h"
        value={counts && sumText(Object.values(counts))}
        note="each state counted up to 1,000"
      />
      <Figure
        name="Success"
        value={counts && (completed + failed === 0 ? "–" : percentText(completed / (completed + failed)))}
        tone={failed > 0 ? "bad" : "quiet"}
        note={
          failed > 0 ? (
            <Link to="/executions" search={{ status: "FAILED", since: "24h" }}>
              {failed.toLocaleString("en")} failed
            </Link>
          ) : (
            "none failed"
          )
        }
      />
      <Figure
        name="Open"
        value={counts && sumText([counts.PENDING, counts.RUNNING, counts.PAUSED])}
        note={
          <Link to="/executions" search={{ status: "PENDING,RUNNING,PAUSED", since: "24h" }}>
            {counts?.PAUSED?.count ? `${counts.PAUSED.count} of them paused` : "See them"}
          </Link>
        }
      />
      <Work />
    </div>
  );
}

/** Who is there to work, and what waits for them. */
function Work(): ReactNode {
  const may = useAllowed("view_operations").allowed;
  const { data } = useQuery({ ...overview(), enabled: may });
  const waiting = data?.queue?.waiting;
  const isBad = data !== undefined && data.verdict.level !== "good";
  return (
    <Figure
      name="Waiting for a worker"
      value={waiting ? `${waiting.count.toLocaleString("en")}${waiting.more ? "+" : ""}` : "–"}
      tone={isBad ? "bad" : "good"}
      note={data !== undefined && <Link to="/operations">{workersText(data)}</Link>}
    />
  );
}

/** `3 workers · 21 of 64 slots busy`, or what is wrong. */
function workersText({ workers, verdict }: Overview): string {
  if (verdict.level !== "good") return verdict.what;
  const there = (workers?.items ?? []).filter(({ status }) => status === "ready" || status === "draining");
  const busy = there.reduce((sum, { running }) => sum + running, 0);
  const slots = there.reduce((sum, { capacity }) => sum + capacity, 0);
  return `${there.length === 1 ? "1 worker" : `${there.length} workers`} · ${busy} of ${slots} slots busy`;
}

function Figure({
  name,
  value,
  note,
  tone = "quiet",
}: {
  name: string;
  value: string | undefined;
  note: ReactNode;
  tone?: "quiet" | "good" | "bad";
}): ReactNode {
  return (
    <section className="card figure">
      <h2>{name}</h2>
      <p className="value number">{value ?? "…"}</p>
      <p className={`note tone-${tone}`}>{note || " "}</p>
    </section>
  );
}

/** `1,284`, or `1,000+` where not all were counted. */
function sumText(counts: readonly ({ count: number; more: boolean } | undefined)[]): string {
  const sum = counts.reduce((before, each) => before + (each?.count ?? 0), 0);
  return `${sum.toLocaleString("en")}${counts.some((each) => each?.more === true) ? "+" : ""}`;
}

/** Never 100 % where something failed. */
function percentText(rate: number): string {
  return `${rate === 1 ? 100 : Math.min(99.9, Math.round(rate * 1_000) / 10)} %`;
}
