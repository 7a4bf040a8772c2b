import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Fire, fireList, type Trigger } from "../api/triggers.ts";
import { Ago } from "../parts/now.tsx";
import { Status } from "../parts/status.tsx";
import { durationText, momentText } from "../parts/time.ts";
import { FIRE_STATES } from "./fire-states.ts";
import { PagedList } from "./paged-list.tsx";

const route = getRouteApi("/triggers/$triggerId");

/** What a trigger has fired, should have and did not, with the execution or the reason. */
export function Fires({ trigger: { trigger_id: id } }: { trigger: Trigger }): ReactNode {
  const { status } = route.useSearch();
  const pages = useInfiniteQuery(fireList(id, status));
  const fires = pages.data?.pages.flatMap((page) => page.fires) ?? [];
  return (
    <section className="card" data-part="fires">
      <header>
        <h2>Fires</h2>
        <nav className="chips row aside" aria-label="Which of them">
          <Link
            from="/triggers/$triggerId"
            to="."
            search={(before) => ({ ...before, status: undefined })}
            activeOptions={{ exact: true }}
            className="button chip"
            aria-current={status === undefined ? "page" : "false"}
          >
            All
          </Link>
          {FIRE_STATES.map((state) => (
            <Link
              key={state}
              from="/triggers/$triggerId"
              to="."
              search={(before) => ({ ...before, status: state })}
              activeOptions={{ exact: true }}
              className="button chip"
              aria-current={status === state ? "page" : "false"}
            >
              <span className="first-upper">{state}</span>
            </Link>
          ))}
        </nav>
      </header>
      <PagedList
        pages={pages}
        count={fires.length}
        empty={status === undefined ? "It has not fired yet." : `None is ${status}.`}
      >
        <Table fires={fires} />
      </PagedList>
    </section>
  );
}

function Table({ fires }: { fires: readonly Fire[] }): ReactNode {
  return (
    <table className="stacked">
      <thead>
        <tr>
          <th>Came to</th>
          <th>For</th>
          <th>Fired</th>
          <th>Execution, or why not</th>
        </tr>
      </thead>
      <tbody>
        {fires.map((fire) => (
          <Row key={fire.fire_id} fire={fire} />
        ))}
      </tbody>
    </table>
  );
}

/** Below this a fire was in time, milliseconds. */
const PUNCTUAL_MS = 2_000;

function Row({ fire }: { fire: Fire }): ReactNode {
  const { status, due_at: due, fired_at: fired, execution_id: executionId, reason } = fire;
  const lateMs = Date.parse(fired) - Date.parse(due);
  return (
    <tr>
      <td>
        <Status of={status} />
      </td>
      <td className="number" data-label="For">
        {momentText(Date.parse(due)).slice(0, 19)}
      </td>
      <td className="number quiet" data-label="Fired">
        <Ago at={fired} />
        {lateMs > PUNCTUAL_MS && `, ${durationText(lateMs)} late`}
      </td>
      <td className="wrap" data-label="Execution">
        {executionId === undefined ? (
          reason
        ) : (
          <Link to="/executions/$executionId" params={{ executionId }} className="mono">
            {executionId}
          </Link>
        )}
      </td>
    </tr>
  );
}
