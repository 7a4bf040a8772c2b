import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CalendarClock } from "lucide-react";
import type { ReactNode } from "react";
import { nextTriggers, type TriggerItem } from "../api/triggers.ts";
import { useNow } from "../parts/now.tsx";
import { agoText, momentText, whenText } from "../parts/time.ts";

/** Fires that are listed. */
const LISTED = 5;
/** So long after its time, a fire is late, milliseconds: servers look every second, and a jitter may be longer. */
const LATE_MS = 60_000;

/** What starts by itself next, the soonest first. */
export function NextFires(): ReactNode {
  const { data, error } = useQuery(nextTriggers(LISTED));
  const now = useNow();
  return (
    <section className="card" data-part="next">
      <header>
        <h2>Next</h2>
        <Link to="/triggers" className="aside">
          All triggers
        </Link>
      </header>
      {data === undefined ? (
        <p className="pad quiet">{error === null ? "Loading …" : `Triggers cannot be read: ${error.message}`}</p>
      ) : data.triggers.length === 0 ? (
        <div className="empty">
          <CalendarClock className="icon" aria-hidden="true" />
          <p>
            No schedules. A playbook gets one with <code>triggers</code> in its document.
          </p>
        </div>
      ) : (
        <ul className="lines fires">
          {data.triggers.map((trigger) => (
            <NextFire key={trigger.trigger_id} trigger={trigger} now={now} />
          ))}
        </ul>
      )}
    </section>
  );
}

function NextFire({ trigger, now }: { trigger: TriggerItem; now: number }): ReactNode {
  const { trigger_id: triggerId, path, name, next_fire: next } = trigger;
  const at = Date.parse(next ?? "");
  const isLate = now - at > LATE_MS;
  return (
    <li>
      <time className="number" dateTime={next ?? undefined} title={momentText(at)}>
        {whenText(at, now)}
      </time>
      <span>
        <Link to="/triggers/$triggerId" params={{ triggerId }} className="plain-link">
          <b>{path}</b>
        </Link>
        <small>{name}</small>
      </span>
      <span className={isLate ? "number late" : "number quiet"}>
        {isLate ? `late, due ${agoText(at, now)}` : agoText(at, now)}
      </span>
    </li>
  );
}
