import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { answerOf, api } from "../api/client.ts";
import type { User } from "../api/types.ts";
import { queries } from "../app/queries.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { roleList, userList } from "./queries.ts";

/** Users with their roles: give one, take one away, let somebody in or out. */
export function Users(): ReactNode {
  const [q, setQ] = useState("");
  const pages = useInfiniteQuery(userList(q.trim() || undefined));
  const roles = useInfiniteQuery(roleList());
  const names = roles.data?.pages.flatMap((page) => page.roles.map(({ name }) => name)) ?? [];
  const users = pages.data?.pages.flatMap((page) => page.users) ?? [];
  if (pages.isError) return <ProblemPanel error={pages.error} again={() => void pages.refetch()} />;
  return (
    <div className="stack">
      <label>
        Name or address
        <input data-filter value={q} onChange={(event) => setQ(event.target.value)} />
      </label>
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && users.length === 0 && (
        <p className="panel">Nobody is like this. Whoever logs in becomes a user, without any role.</p>
      )}
      {users.length > 0 && (
        <div className="panel scroll">
          <table>
            <thead>
              <tr>
                <th>User</th>
                <th>State</th>
                <th>Roles</th>
                <th className="wide">Last login</th>
              </tr>
            </thead>
            <tbody>
              {users.map((user) => (
                <UserRow key={user.user_id} user={user} roles={names} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
    </div>
  );
}

function UserRow({ user, roles }: { user: User; roles: readonly string[] }): ReactNode {
  const address = { user: String(user.user_id) };
  const onSuccess = () => void queries.invalidateQueries({ queryKey: ["users"] });
  const grant = useMutation({
    mutationFn: (role: string) =>
      answerOf(api.PUT("/api/auth/users/{user}/roles/{role}", { params: { path: { ...address, role } } })),
    onSuccess,
  });
  const revoke = useMutation({
    mutationFn: (role: string) =>
      answerOf(api.DELETE("/api/auth/users/{user}/roles/{role}", { params: { path: { ...address, role } } })),
    onSuccess,
  });
  const activate = useMutation({
    mutationFn: (isActive: boolean) =>
      answerOf(api.PUT("/api/auth/users/{user}", { params: { path: address }, body: { is_active: isActive } })),
    onSuccess,
  });
  const has = user.roles.filter(({ is_active }) => is_active).map(({ role }) => role);
  const refused = grant.error ?? revoke.error ?? activate.error;
  return (
    <tr>
      <td>
        <div>{user.display_name}</div>
        <div className="quiet">{user.email}</div>
      </td>
      <td>
        <button type="button" disabled={activate.isPending} onClick={() => activate.mutate(!user.is_active)}>
          {user.is_active ? "active: lock out" : "locked out: let in"}
        </button>
      </td>
      <td>
        <div className="row">
          {has.map((role) => (
            <button key={role} type="button" title={`Take ${role} away`} onClick={() => revoke.mutate(role)}>
              {role} ✕
            </button>
          ))}
          <select
            aria-label={`Give ${user.email} a role`}
            value=""
            onChange={(event) => {
              if (event.target.value !== "") grant.mutate(event.target.value);
            }}
          >
            <option value="">give a role</option>
            {roles
              .filter((role) => !has.includes(role))
              .map((role) => (
                <option key={role}>{role}</option>
              ))}
          </select>
        </div>
        {refused !== null && (
          <p role="alert" className="wrap">
            {refused.message}
          </p>
        )}
      </td>
      <td className="wide">{user.last_login_at === null ? "never" : <Ago at={user.last_login_at} />}</td>
    </tr>
  );
}
