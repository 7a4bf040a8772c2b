import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Fragment, type ReactNode, useState } from "react";
import type { AuditEntry } from "../api/types.ts";
import { JsonView } from "../parts/json/view.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { momentText } from "../parts/time.ts";
import { AuditFilterForm } from "./audit-filters.tsx";
import { auditList } from "./queries.ts";

const route = getRouteApi("/access");
const SIGNS: Record<AuditEntry["result"], { text: string; tone: string }> = {
  allow: { text: "✓ allowed", tone: "good" },
  deny: { text: "⊘ refused", tone: "bad" },
  error: { text: "✕ failed", tone: "warn" },
};

/** The audit log: the actor, the action, the rule that decided, and the outcome. */
export function AuditLog(): ReactNode {
  const { actor, action, resource, result, since, until } = route.useSearch();
  const pages = useInfiniteQuery(auditList({ actor, action, resource, result, since, until }));
  const entries = pages.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <div className="stack">
      <AuditFilterForm />
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && entries.length === 0 && !pages.hasNextPage && (
        <p className="panel">No matching lines. Remove a filter, or choose another time.</p>
      )}
      {entries.length > 0 && <Entries entries={entries} />}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          {pages.isFetchingNextPage ? "Loading …" : "Older ones"}
        </button>
      )}
    </div>
  );
}

function Entries({ entries }: { entries: readonly AuditEntry[] }): ReactNode {
  const search = route.useSearch();
  const [open, setOpen] = useState<string>();
  return (
    <div className="panel scroll">
      <table className="audit stacked">
        <thead>
          <tr>
            <th>When</th>
            <th>Who</th>
            <th>Did</th>
            <th>On what</th>
            <th>Result</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <Fragment key={entry.audit_id}>
              <tr>
                <td className="number">
                  <button
                    type="button"
                    className="plain"
                    aria-expanded={open === entry.audit_id}
                    onClick={() => setOpen(open === entry.audit_id ? undefined : entry.audit_id)}
                  >
                    {momentText(Date.parse(entry.at)).slice(0, 19)}
                  </button>
                </td>
                <td className="wrap" data-label="Who">
                  {entry.actor === null ? (
                    entry.actor_kind
                  ) : (
                    <Link to="/access" search={{ ...search, actor: entry.actor }}>
                      {entry.actor}
                    </Link>
                  )}
                </td>
                <td className="mono wrap" data-label="Did">
                  {entry.action}
                </td>
                <td className="mono wrap" data-label="On what">
                  <Subject of={entry.resource} />
                </td>
                <td data-label="Result">
                  <span className={`status tone-${SIGNS[entry.result].tone}`}>{SIGNS[entry.result].text}</span>
                </td>
              </tr>
              {open === entry.audit_id && (
                <tr>
                  <td colSpan={5}>
                    <Detail entry={entry} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What an entry is about, as a link where it has a page: `execution/7211`, `playbook/etl/load`. */
function Subject({ of }: { of: AuditEntry["resource"] }): ReactNode {
  const [, kind, name] = /^(\w+)\/(.+)$/.exec(of ?? "") ?? [];
  if (name === undefined) return of;
  switch (kind) {
    case "execution":
      return (
        <Link to="/executions/$executionId" params={{ executionId: name }}>
          {of}
        </Link>
      );
    case "bulk":
      return (
        <Link to="/executions/bulk/$bulkId" params={{ bulkId: name }}>
          {of}
        </Link>
      );
    case "trigger":
      return (
        <Link to="/triggers/$triggerId" params={{ triggerId: name }}>
          {of}
        </Link>
      );
    case "approval":
      return (
        <Link to="/inbox" search={{ approval: name }}>
          {of}
        </Link>
      );
    case "playbook":
      return (
        <Link to="/entry/$" params={{ _splat: name }}>
          {of}
        </Link>
      );
    case "credential":
      return (
        <Link to="/credentials" search={{ name }}>
          {of}
        </Link>
      );
    case "role":
      return (
        <Link to="/access" search={{ tab: "roles", role: name }}>
          {of}
        </Link>
      );
    case "user":
      return (
        <Link to="/access" search={{ q: name }}>
          {of}
        </Link>
      );
    default:
      return of;
  }
}

function Detail({ entry }: { entry: AuditEntry }): ReactNode {
  return (
    <div className="stack">
      <dl className="facts">
        <dt>Decided by</dt>
        <dd>{entry.rule}</dd>
        <dt>Who</dt>
        <dd>
          {entry.actor_kind}
          {entry.user_id !== null && `, user ${entry.user_id}`}
        </dd>
        <dt>From</dt>
        <dd className="mono">{entry.address ?? "unknown"}</dd>
        <dt>Request</dt>
        <dd className="mono">{entry.request_id ?? "none"}</dd>
        <dt>At</dt>
        <dd className="mono">{entry.at}</dd>
      </dl>
      {entry.detail !== null && <JsonView label="Detail" value={entry.detail} />}
    </div>
  );
}
