import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Inbox } from "lucide-react";
import type { ReactNode } from "react";
import "../styles/inbox.css";
import { type Approval, type ApprovalView, approvalList } from "../api/approvals.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Status } from "../parts/status.tsx";
import { ApprovalDetail } from "./approval.tsx";
import { INBOX_VIEWS } from "./views.ts";

const route = getRouteApi("/inbox");

/** What waits for a decision: by default of the person who looks. */
export function InboxPage(): ReactNode {
  const { view = "mine", approval } = route.useSearch();
  const pages = useInfiniteQuery(approvalList(view));
  const approvals = pages.data?.pages.flatMap((page) => page.approvals) ?? [];
  const shown = approval ?? approvals[0]?.approval_id;
  return (
    <div className="stack">
      <h1>Inbox</h1>
      <nav className="chips row" aria-label="Which approvals">
        {Object.entries(INBOX_VIEWS).map(([name, words]) => (
          <Link
            key={name}
            to="/inbox"
            search={{ view: name === "mine" ? undefined : (name as ApprovalView) }}
            activeOptions={{ exact: true }}
            className="button chip"
            aria-current={name === view ? "page" : undefined}
          >
            {words.name}
          </Link>
        ))}
      </nav>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && approvals.length === 0 && shown === undefined && <Nothing view={view} />}
      {shown !== undefined && (
        <div className="inbox" data-chosen={approval !== undefined}>
          <section className="card choices" aria-label="Approvals">
            {approvals.length === 0 && <p className="pad quiet">{INBOX_VIEWS[view].none}</p>}
            <ul className="lines">
              {approvals.map((one) => (
                <Row key={one.approval_id} approval={one} isShown={one.approval_id === shown} />
              ))}
            </ul>
            {pages.hasNextPage && (
              <p className="pad">
                <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
                  More
                </button>
              </p>
            )}
          </section>
          <ApprovalDetail key={shown} approvalId={shown} />
        </div>
      )}
    </div>
  );
}

function Row({ approval, isShown }: { approval: Approval; isShown: boolean }): ReactNode {
  const { approval_id: id, title, path, step, status, opened_at: openedAt, due, closed_at: closedAt } = approval;
  return (
    <li>
      <Link
        from="/inbox"
        to="."
        search={(before) => ({ ...before, approval: id })}
        aria-current={isShown ? "true" : undefined}
        className="choice"
      >
        <b>{title}</b>
        <small>
          {path} · {step}
        </small>
        <small>
          {closedAt === undefined ? (
            <>
              asked <Ago at={openedAt} />
              {due !== undefined && (
                <>
                  {" · expires "}
                  <Ago at={due} />
                </>
              )}
            </>
          ) : (
            <>
              <Status of={status} /> <Ago at={closedAt} />
            </>
          )}
        </small>
      </Link>
    </li>
  );
}

function Nothing({ view }: { view: ApprovalView }): ReactNode {
  return (
    <section className="panel empty">
      <Inbox className="icon" aria-hidden="true" />
      <h2>{INBOX_VIEWS[view].none}</h2>
      <p>
        A step that waits with <code>approval</code> asks people here, and its run continues with their decision.
      </p>
      {view === "mine" && (
        <div className="row">
          <Link to="/inbox" search={{ view: "open" }} className="button">
            Show approvals that wait for others
          </Link>
        </div>
      )}
    </section>
  );
}
