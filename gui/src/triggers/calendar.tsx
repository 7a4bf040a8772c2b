import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { type ReactNode, useMemo } from "react";
import { type Fire, firesSince, type Trigger, timesBetween } from "../api/triggers.ts";
import { useNow } from "../parts/now.tsx";
import { useIsNarrow } from "../parts/use-narrow.ts";
import { monthOf } from "./fire-states.ts";
import { type Day, groupsOf, monthAfter, monthBounds, weeksOf } from "./month.ts";

const route = getRouteApi("/triggers/$triggerId");
/** Entries of a day that stand alone; more are counted. */
const ENTRIES_MAX = 4;
const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** A month of a trigger: what it has fired, with what came of it, and what comes. */
export function Calendar({ trigger }: { trigger: Trigger }): ReactNode {
  const { trigger_id: id, enabled } = trigger;
  const { month = monthOf(Date.now()) } = route.useSearch();
  const { from, until } = monthBounds(month);
  const now = useNow();
  const minute = Math.floor(now / 60_000) * 60_000;
  const past = useQuery({ ...firesSince(id, from), enabled: from <= minute });
  const isComing = trigger.kind === "schedule" && enabled && until > minute;
  const next = useQuery({ ...timesBetween(id, Math.max(from, minute), until), enabled: isComing });
  const weeks = useMemo(
    () => weeksOf(month, past.data?.fires ?? [], isComing ? (next.data?.times ?? []) : []),
    [month, past.data, next.data, isComing],
  );
  const isNarrow = useIsNarrow();
  const isPartial = past.data?.isWhole === false || (isComing && next.data?.isWhole === false);
  return (
    <section className="card" data-part="calendar">
      <header>
        <h2>{monthText(from)}</h2>
        <div className="row aside">
          <MonthLink to={monthAfter(month, -1)} name="Month before">
            <ChevronLeft className="icon" aria-hidden="true" />
          </MonthLink>
          <MonthLink to={undefined} name="This month">
            Today
          </MonthLink>
          <MonthLink to={monthAfter(month, 1)} name="Month after">
            <ChevronRight className="icon" aria-hidden="true" />
          </MonthLink>
        </div>
      </header>
      {isNarrow ? <Agenda weeks={weeks} /> : <Grid weeks={weeks} today={new Date(minute).setHours(0, 0, 0, 0)} />}
      {isPartial && <p className="pad quiet">It fires too often for the calendar: not all of this month is counted.</p>}
    </section>
  );
}

function MonthLink({ to, name, children }: { to: string | undefined; name: string; children: ReactNode }): ReactNode {
  return (
    <Link
      from="/triggers/$triggerId"
      to="."
      search={(before) => ({ ...before, month: to })}
      replace
      resetScroll={false}
      activeOptions={{ exact: true }}
      className="button"
      {...(typeof children !== "string" && { "aria-label": name })}
      title={name}
    >
      {children}
    </Link>
  );
}

function Grid({ weeks, today }: { weeks: readonly Day[][]; today: number }): ReactNode {
  return (
    <table className="calendar">
      <thead>
        <tr>
          {WEEKDAYS.map((name) => (
            <th key={name}>{name}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {weeks.map((week) => (
          <tr key={week[0]?.at}>
            {week.map((day) => (
              <td
                key={day.at}
                className={day.isOfMonth ? "" : "other"}
                aria-current={day.at === today ? "date" : undefined}
              >
                <span className="date">{new Date(day.at).getDate()}</span>
                <Entries day={day} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Where there is no room for a grid: the days on which something is. */
function Agenda({ weeks }: { weeks: readonly Day[][] }): ReactNode {
  const days = weeks.flat().filter(({ fires, coming }) => fires.length + coming.length > 0);
  if (days.length === 0) return <p className="pad quiet">Nothing this month.</p>;
  return (
    <ul className="lines agenda">
      {days.map((day) => (
        <li key={day.at}>
          <span className="number">
            {new Date(day.at).toLocaleDateString("en-GB", { weekday: "short", day: "numeric" })}
          </span>
          <div className="row">
            <Entries day={day} />
          </div>
        </li>
      ))}
    </ul>
  );
}

function Entries({ day: { fires, coming } }: { day: Day }): ReactNode {
  if (fires.length + coming.length > ENTRIES_MAX) return <Counts fires={fires} coming={coming} />;
  return (
    <>
      {fires.map((fire) => (
        <FireEntry key={fire.fire_id} fire={fire} />
      ))}
      {coming.map((at) => (
        <span key={at} className="entry coming">
          {hourText(at)}
          <span className="unseen"> to come</span>
        </span>
      ))}
    </>
  );
}

const TONES: Readonly<Record<Fire["status"], string>> = {
  started: "good",
  queued: "warn",
  skipped: "quiet",
  missed: "warn",
  failed: "bad",
};
/** Never the colour alone. */
const SIGNS: Readonly<Record<Fire["status"], string>> = {
  started: "✓",
  queued: "…",
  skipped: "–",
  missed: "!",
  failed: "✕",
};

function FireEntry({ fire }: { fire: Fire }): ReactNode {
  const { status, due_at: due, execution_id: executionId, reason } = fire;
  const inside = (
    <>
      <span aria-hidden="true">{SIGNS[status]}</span> {hourText(Date.parse(due))}
      <span className="unseen"> {status}</span>
    </>
  );
  const look = {
    className: `entry tone-${TONES[status]}`,
    title: `${status}${reason === undefined ? "" : `: ${reason}`}`,
  };
  return executionId === undefined ? (
    <span {...look}>{inside}</span>
  ) : (
    <Link to="/executions/$executionId" params={{ executionId }} {...look}>
      {inside}
    </Link>
  );
}

/** `23 started`, `1 failed`, `4 to come`. */
function Counts({ fires, coming }: Pick<Day, "fires" | "coming">): ReactNode {
  const counts = groupsOf(fires, ({ status }) => status);
  return (
    <>
      {[...counts].map(([status, of]) => (
        <span key={status} className={`entry tone-${TONES[status]}`}>
          <span aria-hidden="true">{SIGNS[status]}</span> {of.length} {status}
        </span>
      ))}
      {coming.length > 0 && <span className="entry coming">{coming.length} to come</span>}
    </>
  );
}

function monthText(at: number): string {
  return new Date(at).toLocaleDateString("en-GB", { month: "long", year: "numeric" });
}

function hourText(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}
