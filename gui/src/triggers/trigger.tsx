import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import "../styles/triggers.css";
import { type Trigger, timesBetween, triggerDetail } from "../api/triggers.ts";
import { Ago, useNow } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { momentText, whenText } from "../parts/time.ts";
import { useTitle } from "../parts/title.ts";
import { Backfill } from "./backfill.tsx";
import { Calendar } from "./calendar.tsx";
import { FireNow, Toggle } from "./deeds.tsx";
import { Deliveries } from "./deliveries.tsx";
import { Fires } from "./fires.tsx";
import { Kind, OnOff } from "./kinds.tsx";
import { FiresFor } from "./section.tsx";

const route = getRouteApi("/triggers/$triggerId");

/** One trigger: when it fires next, what it has fired, and what it fires for. */
export function TriggerPage(): ReactNode {
  const { triggerId } = route.useParams();
  const { data, error, refetch } = useQuery(triggerDetail(triggerId));
  useTitle(data === undefined ? "Trigger" : `${data.name} of ${data.path}`);
  if (data === undefined)
    return error === null ? (
      <p className="quiet">Loading …</p>
    ) : (
      <ProblemPanel error={error} again={() => void refetch()} />
    );
  return (
    <div className="stack">
      <Head trigger={data} />
      <div className="trigger-columns">
        <div className="stack">
          {data.kind === "schedule" && <Calendar trigger={data} />}
          {data.kind === "webhook" && <Deliveries trigger={data} />}
          <Fires trigger={data} />
        </div>
        <div className="stack">
          <FiresFor trigger={data} />
          {data.kind === "schedule" && <NextTimes trigger={data} />}
        </div>
      </div>
    </div>
  );
}

function Head({ trigger }: { trigger: Trigger }): ReactNode {
  const { path, name, kind, enabled, version, document, active_since: since } = trigger;
  return (
    <div className="row spread">
      <div className="stack tight">
        <h1 className="row">
          <span className="wrap">{name}</span> <OnOff enabled={enabled} />
        </h1>
        <p className="row quiet">
          <Kind of={kind} />
          <span>
            starts{" "}
            <Link to="/entry/$" params={{ _splat: path }}>
              {path}
            </Link>
          </span>
          <span>
            defined in{" "}
            <Link to="/entry/$" params={{ _splat: document }} search={{ tab: "document" }}>
              {document === path ? "its document" : document}
            </Link>{" "}
            v{version}, since <Ago at={since} />
          </span>
        </p>
      </div>
      <div className="row">
        <Toggle trigger={trigger} />
        {kind === "schedule" && <Backfill trigger={trigger} />}
        <FireNow trigger={trigger} />
      </div>
    </div>
  );
}

/** Times that are listed; the calendar has more. */
const LISTED = 8;

function NextTimes({ trigger: { trigger_id: id, enabled } }: { trigger: Trigger }): ReactNode {
  const now = useNow();
  // Asked anew each minute, not each second.
  const minute = Math.floor(now / 60_000) * 60_000;
  const { data } = useQuery(timesBetween(id, minute, Number.POSITIVE_INFINITY));
  const times = data?.times.filter((at) => at > now).slice(0, LISTED) ?? [];
  return (
    <section className="card">
      <header>
        <h2>Next</h2>
        <span className="aside">{Intl.DateTimeFormat().resolvedOptions().timeZone}</span>
      </header>
      {!enabled && <p className="pad quiet">It is off and will not fire at these times.</p>}
      <ul className="lines times">
        {times.map((at) => (
          <li key={at}>
            <time className="number" dateTime={new Date(at).toISOString()} title={momentText(at)}>
              {whenText(at, now)}
            </time>
            <span className="quiet">
              <Ago at={new Date(at).toISOString()} />
            </span>
          </li>
        ))}
      </ul>
      {data !== undefined && times.length === 0 && <p className="pad quiet">It will not fire again.</p>}
    </section>
  );
}
