import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api } from "../api/client.ts";
import type { Session, User } from "../api/types.ts";
import { type Allowed, useAllowed } from "../parts/allowed.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Confirm } from "./confirm.tsx";
import { sessionList } from "./queries.ts";

/** Where a user is logged in, and how to end that. */
export function UserSessions({ user }: { user: User }): ReactNode {
  const may = useAllowed("manage_users");
  const id = String(user.user_id);
  const pages = useInfiniteQuery(sessionList(id));
  const sessions = pages.data?.pages.flatMap((page) => page.sessions) ?? [];
  const endAll = () => api("DELETE /api/auth/users/:user/sessions", { params: { user: id } });
  return (
    <section className="panel stack">
      <div className="row spread">
        <h2>Sessions</h2>
        {sessions.length > 1 && (
          <Confirm
            label="End all …"
            title={`End all sessions of ${user.email}?`}
            action="End all"
            may={may}
            run={endAll}
          >
            They have to log in again, on every device.
          </Confirm>
        )}
      </div>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && sessions.length === 0 && <p className="quiet">No sessions.</p>}
      {sessions.length > 0 && (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th>Last used</th>
                <th>From</th>
                <th className="wide">Browser or program</th>
                <th className="wide">Began</th>
                <th className="wide">Ends</th>
                <th>
                  <span className="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {sessions.map((session) => (
                <Row key={session.session_id} session={session} may={may} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          Older ones
        </button>
      )}
    </section>
  );
}

function Row({ session, may }: { session: Session; may: Allowed }): ReactNode {
  const path = { session_id: session.session_id };
  return (
    <tr>
      <td>
        <Ago at={session.last_seen_at} />
      </td>
      <td className="mono">{session.address ?? "unknown"}</td>
      <td className="wide wrap">{session.user_agent ?? "unknown"}</td>
      <td className="wide">
        <Ago at={session.created_at} />
      </td>
      <td className="wide">
        <Ago at={session.expires_at} />
      </td>
      <td className="actions">
        <Confirm
          label="End"
          name={`End the session from ${session.address ?? "an unknown address"}`}
          title="End this session?"
          action="End it"
          may={may}
          run={() => api("DELETE /api/auth/sessions/:session_id", { params: path })}
        >
          {session.email} has to log in again there.
        </Confirm>
      </td>
    </tr>
  );
}
