import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { CalendarClock } from "lucide-react";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import "../styles/triggers.css";
import { type TriggerItem, triggerList } from "../api/triggers.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { useRowKeys } from "../parts/use-row-keys.ts";
import { KINDS, Kind, OnOff } from "./kinds.tsx";

const route = getRouteApi("/triggers");
/** Triggers that are read to find a text in them. */
const SEARCHED_MAX = 5_000;

/** What starts playbooks by itself. */
export function TriggersPage(): ReactNode {
  const { kind, q } = route.useSearch();
  const pages = useInfiniteQuery(triggerList({ kind }));
  const { hasNextPage, isFetching, isError, fetchNextPage } = pages;
  const triggers = pages.data?.pages.flatMap((page) => page.triggers) ?? [];
  const shown = triggers.filter(({ path, name }) => q === undefined || `${path} ${name}`.includes(q));
  const searchesOn = q !== undefined && hasNextPage && triggers.length < SEARCHED_MAX;
  useEffect(() => {
    if (searchesOn && !isFetching && !isError) void fetchNextPage();
  }, [searchesOn, isFetching, isError, fetchNextPage]);
  const isFiltered = kind !== undefined || q !== undefined;
  return (
    <div className="stack">
      <h1>Triggers</h1>
      <Filters />
      {isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && shown.length === 0 && !searchesOn && <Nothing isFiltered={isFiltered} />}
      {shown.length > 0 && <Table triggers={shown} />}
      {hasNextPage && !searchesOn && (
        <p>
          <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void fetchNextPage()}>
            More
          </button>
        </p>
      )}
    </div>
  );
}

function Filters(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [q, setQ] = useState(search.q ?? "");
  useEffect(() => setQ(search.q ?? ""), [search.q]);
  const keep = () => void navigate({ search: { ...search, q: q.trim() || undefined }, replace: true });
  return (
    <div className="row spread">
      <nav className="chips row" aria-label="Kinds">
        <Link
          to="/triggers"
          search={{ q: search.q }}
          activeOptions={{ exact: true }}
          className="button chip"
          aria-current={search.kind === undefined ? "page" : "false"}
        >
          All
        </Link>
        {Object.entries(KINDS).map(([kind, { name, Sign }]) => (
          <Link
            key={kind}
            to="/triggers"
            search={{ q: search.q, kind: kind as TriggerItem["kind"] }}
            activeOptions={{ exact: true }}
            className="button chip"
            aria-current={search.kind === kind ? "page" : "false"}
          >
            <Sign className="icon" aria-hidden="true" />
            {name}
          </Link>
        ))}
      </nav>
      <input
        data-filter
        type="search"
        aria-label="Playbook or name"
        placeholder="Playbook or name"
        value={q}
        onChange={(event) => setQ(event.target.value)}
        onBlur={keep}
        onKeyDown={({ key }) => key === "Enter" && keep()}
      />
    </div>
  );
}

function Table({ triggers }: { triggers: readonly TriggerItem[] }): ReactNode {
  const navigate = useNavigate();
  const open = useCallback(
    (position: number) => {
      const triggerId = triggers[position]?.trigger_id;
      if (triggerId !== undefined) void navigate({ to: "/triggers/$triggerId", params: { triggerId } });
    },
    [triggers, navigate],
  );
  const [at, body] = useRowKeys(triggers.length, open);
  return (
    <div className="panel scroll">
      <table className="stacked">
        <thead>
          <tr>
            <th>Playbook</th>
            <th>Trigger</th>
            <th>Kind</th>
            <th>State</th>
            <th>Last fire</th>
            <th>Next fire</th>
          </tr>
        </thead>
        <tbody ref={body}>
          {triggers.map((trigger, position) => (
            <Row key={trigger.trigger_id} trigger={trigger} isAt={position === at} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ trigger, isAt }: { trigger: TriggerItem; isAt: boolean }): ReactNode {
  const { trigger_id: triggerId, path, name, kind, enabled, last_fire: last, next_fire: next } = trigger;
  return (
    <tr aria-selected={isAt}>
      <td className="wrap">
        <Link to="/triggers/$triggerId" params={{ triggerId }} className="name">
          {path}
        </Link>
      </td>
      <td className="wrap" data-label="Trigger">
        {name}
      </td>
      <td data-label="Kind">
        <Kind of={kind} />
      </td>
      <td data-label="State">
        <OnOff enabled={enabled} />
      </td>
      <td className="number quiet" data-label="Last fire">
        {last === null ? "never" : <Ago at={last} />}
      </td>
      <td className="number" data-label="Next fire">
        {next === null || !enabled ? <span className="quiet">–</span> : <Ago at={next} />}
      </td>
    </tr>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }): ReactNode {
  return (
    <section className="panel empty">
      <CalendarClock className="icon" aria-hidden="true" />
      <h2>{isFiltered ? "No matching triggers" : "No triggers yet"}</h2>
      {isFiltered ? (
        <p>
          <Link to="/triggers">Show all triggers</Link>
        </p>
      ) : (
        <>
          <p>
            A playbook starts by itself with <code>triggers</code> in its document: at times, for webhooks, when another
            execution ends, or by signals and messages.
          </p>
          <pre>{EXAMPLE}</pre>
          <div className="row">
            <Link to="/catalog" search={{ kind: "playbook" }} className="button">
              Choose a playbook
            </Link>
          </div>
        </>
      )}
    </section>
  );
}

const EXAMPLE = `triggers:
  - name: nightly
    schedule: { cron: "0 6 * * 1-5", timezone: Europe/Berlin }`;
