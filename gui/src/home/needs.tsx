import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, TriangleAlert, UserRound, X } from "lucide-react";
import type { ReactNode } from "react";
import { type Approval, myApprovals } from "../api/approvals.ts";
import { overview } from "../api/queries.ts";
import type { ExecutionItem } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { Ago } from "../parts/now.tsx";
import { recentFailures } from "./queries.ts";

/** Something that a person has to do: its sign, what it is, more of it, and where it is done. */
export interface Need {
  key: string;
  tone: "bad" | "warn";
  Sign: typeof X;
  title: ReactNode;
  more: ReactNode;
  action: ReactNode;
}

/** Approvals that are listed; the inbox has all. */
const APPROVALS_MAX = 5;
/** Playbooks that are listed; there are more behind the link to all that failed. */
const FAILING_MAX = 6;

/** What needs attention at the moment, the worst first. */
export function useNeeds(): readonly Need[] {
  const may = useAllowed("view_operations").allowed;
  const state = useQuery({ ...overview(), enabled: may }).data;
  const failures = useQuery(recentFailures()).data?.executions ?? [];
  const approvals = useQuery(myApprovals()).data?.approvals ?? [];
  const stuck =
    state === undefined || state.verdict.level === "good"
      ? []
      : [
          {
            key: "stuck",
            tone: state.verdict.level,
            Sign: TriangleAlert,
            title: state.verdict.what,
            more: state.verdict.causes[0]?.what ?? "",
            action: (
              <Link to="/operations" className="button">
                Look
              </Link>
            ),
          } satisfies Need,
        ];
  return [...stuck, ...byPath(failures).map(failureOf), ...approvals.slice(0, APPROVALS_MAX).map(approvalOf)];
}

function approvalOf({ approval_id: id, title, path, opened_at: at, due }: Approval): Need {
  return {
    key: `approval ${id}`,
    tone: "warn",
    Sign: UserRound,
    title,
    more: (
      <>
        {path} · asked <Ago at={at} />
        {due !== undefined && (
          <>
            {" · expires "}
            <Ago at={due} />
          </>
        )}
      </>
    ),
    action: (
      <Link to="/inbox" search={{ approval: id }} className="button" aria-label={`Decide: ${title}`}>
        Decide
      </Link>
    ),
  };
}

/** The newest failure of each playbook, with how many there are. A playbook whose newest run is well again is left out only by time. */
function byPath(failures: readonly ExecutionItem[]): { newest: ExecutionItem; count: number }[] {
  const groups = new Map<string, { newest: ExecutionItem; count: number }>();
  for (const execution of failures) {
    const group = groups.get(execution.path);
    if (group === undefined) groups.set(execution.path, { newest: execution, count: 1 });
    else group.count += 1;
  }
  return [...groups.values()].slice(0, FAILING_MAX);
}

function failureOf({ newest, count }: { newest: ExecutionItem; count: number }): Need {
  const { execution_id: id, path, error, started_at: at } = newest;
  return {
    key: `failed ${path}`,
    tone: "bad",
    Sign: X,
    title: (
      <Link to="/executions/$executionId" params={{ executionId: id }} className="plain-link">
        {path} failed{count > 1 && ` ${count} times`}
      </Link>
    ),
    more: (
      <>
        {error?.message ?? "without a message"} · <Ago at={at} />
      </>
    ),
    action: (
      <Link
        to="/executions/$executionId"
        params={{ executionId: id }}
        className="button"
        aria-label={`See why ${path} failed`}
      >
        See why
      </Link>
    ),
  };
}

/** The list of them. */
export function Needs({ needs }: { needs: readonly Need[] }): ReactNode {
  return (
    <section className="card" data-part="needs">
      <header>
        <h2>Needs you</h2>
        <span className="aside number">{needs.length > 0 && needs.length}</span>
      </header>
      {needs.length === 0 ? (
        <div className="empty">
          <CircleCheck className="icon" aria-hidden="true" />
          <p>Nothing has failed in the last 24 hours, and nothing waits for you.</p>
        </div>
      ) : (
        <ul className="lines">
          {needs.map(({ key, tone, Sign, title, more, action }) => (
            <li key={key} className={`tone-${tone}`}>
              <Sign className="icon toned" aria-hidden="true" />
              <span>
                <b>{title}</b>
                <small>{more}</small>
              </span>
              {action}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
