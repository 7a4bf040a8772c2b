import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import type { User } from "../api/types.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { AddUser } from "./add-user.tsx";
import { userList } from "./queries.ts";

const route = getRouteApi("/access");

/** Users with their roles; one of them is opened to change something. */
export function Users(): ReactNode {
  const { q, role } = route.useSearch();
  const navigate = route.useNavigate();
  const [text, setText] = useState(q ?? "");
  useEffect(() => setText(q ?? ""), [q]);
  const pages = useInfiniteQuery(userList({ q, role }));
  const users = pages.data?.pages.flatMap((page) => page.users) ?? [];
  const keep = () => void navigate({ search: (before) => ({ ...before, q: text.trim() || undefined }), replace: true });
  return (
    <div className="stack">
      <div className="row spread">
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault();
            keep();
          }}
        >
          <label>
            Name or address
            <input data-filter value={text} onChange={(event) => setText(event.target.value)} onBlur={keep} />
          </label>
          {role !== undefined && (
            <Link to="/access" search={{ tab: "users", q }} className="button">
              with the role {role} ✕
            </Link>
          )}
        </form>
        <AddUser />
      </div>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && users.length === 0 && (
        <p className="panel">No user matches. Whoever logs in for the first time becomes a user without a role.</p>
      )}
      {users.length > 0 && <UserTable users={users} />}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
    </div>
  );
}

function UserTable({ users }: { users: readonly User[] }): ReactNode {
  return (
    <div className="panel scroll">
      <table>
        <thead>
          <tr>
            <th>User</th>
            <th>Roles</th>
            <th>State</th>
            <th className="wide">Last login</th>
          </tr>
        </thead>
        <tbody>
          {users.map((user) => (
            <tr key={user.user_id}>
              <td>
                <Link to="/access" search={{ tab: "users", user: String(user.user_id) }} className="wrap">
                  {user.display_name}
                </Link>
                <div className="quiet wrap">{user.email}</div>
              </td>
              <td>{user.roles.map(({ role }) => role).join(", ") || <span className="quiet">none</span>}</td>
              <td className={`status tone-${user.is_active ? "good" : "bad"}`}>
                {user.is_active ? "✓ active" : "⊘ locked out"}
              </td>
              <td className="wide">{user.last_login_at === null ? "never" : <Ago at={user.last_login_at} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
