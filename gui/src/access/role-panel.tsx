import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api } from "../api/client.ts";
import type { Role } from "../api/types.ts";
import { type Allowed, useAllowed } from "../parts/allowed.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { Confirm } from "./confirm.tsx";
import { accessChanged, permissionList, roleDetail, userList } from "./queries.ts";
import { RoleRules } from "./role-rules.tsx";

/** The role that is given and taken, but never changed. */
const KEPT = "admin";
const KEPT_WHY = "The role admin stays as it is, so that an administrator always remains. Add another role.";

/** One role: its permissions, its rules for playbooks, and its users. */
export function RolePanel({ name }: { name: string }): ReactNode {
  const role = useQuery(roleDetail(name));
  const manages = useAllowed("manage_roles");
  const may: Allowed = name === KEPT && manages.allowed ? { allowed: false, why: KEPT_WHY } : manages;
  return (
    <div className="stack">
      <p>
        <Link to="/access" search={{ tab: "roles" }}>
          ← All roles
        </Link>
      </p>
      {role.isError && <ProblemPanel error={role.error} again={() => void role.refetch()} />}
      {role.isPending && <p className="quiet">Loading …</p>}
      {role.isSuccess && (
        <>
          <section className="panel stack">
            <div className="row spread">
              <h2>
                {role.data.name} {!role.data.is_active && <span className="quiet">(inactive)</span>}
              </h2>
              <State role={role.data} may={may} />
            </div>
            {role.data.description !== null && <p className="wrap">{role.data.description}</p>}
            {!may.allowed && <p className="quiet wrap">{may.why}</p>}
          </section>
          <RoleRules role={role.data} may={may} />
          <RolePermissions role={role.data} may={may} />
          <Members role={role.data} />
        </>
      )}
    </div>
  );
}

function State({ role, may }: { role: Role; may: Allowed }): ReactNode {
  const navigate = useNavigate();
  const path = { role: role.name };
  const isActive = !role.is_active;
  const change = () => api("PUT /api/auth/roles/:role", { params: path, body: { is_active: isActive } });
  const remove = async () => {
    await api("DELETE /api/auth/roles/:role", { params: path });
    await navigate({ to: "/access", search: { tab: "roles" } });
  };
  return (
    <div className="row">
      <Confirm
        label={isActive ? "Activate …" : "Deactivate …"}
        title={isActive ? `Activate ${role.name}?` : `Deactivate ${role.name}?`}
        action={isActive ? "Activate" : "Deactivate"}
        may={may}
        run={change}
      >
        {isActive
          ? "Its users get back what it allows."
          : "Its users keep it, but it grants nothing while it is inactive."}
      </Confirm>
      <Confirm label="Delete …" title={`Delete the role ${role.name}?`} action="Delete" may={may} run={remove}>
        Its users lose it. This cannot be undone.
      </Confirm>
    </div>
  );
}

function RolePermissions({ role, may }: { role: Role; may: Allowed }): ReactNode {
  const known = useQuery(permissionList());
  const change = useMutation({
    mutationFn: (permissions: string[]) =>
      api("PUT /api/auth/roles/:role", { params: { role: role.name }, body: { permissions } }),
    onSuccess: accessChanged,
  });
  // What was just chosen stands until the answer is there.
  const given = change.isPending ? change.variables : role.permissions;
  const toggle = (name: string, isGiven: boolean) => {
    const others = role.permissions.filter((each) => each !== name);
    change.mutate(isGiven ? [...others, name] : others);
  };
  return (
    <section className="panel stack">
      <h2>Global permissions</h2>
      {known.isError && <ProblemPanel error={known.error} again={() => void known.refetch()} />}
      {change.isError && (
        <p role="alert" className="panel tone-bad wrap">
          {change.error.message}
        </p>
      )}
      {known.data?.permissions.map(({ name, description }) => (
        <label key={name} className="choice" title={may.why}>
          <input
            type="checkbox"
            checked={given.includes(name)}
            disabled={!may.allowed || change.isPending}
            onChange={(event) => toggle(name, event.target.checked)}
          />
          <span>
            <code>{name}</code> <span className="quiet">{description}</span>
          </span>
        </label>
      ))}
    </section>
  );
}

function Members({ role }: { role: Role }): ReactNode {
  const sees = useAllowed("manage_users");
  const pages = useInfiniteQuery({ ...userList({ role: role.name }), enabled: sees.allowed });
  const users = pages.data?.pages.flatMap((page) => page.users) ?? [];
  return (
    <section className="panel stack">
      <h2>Who has it</h2>
      {!sees.allowed && <p className="quiet wrap">{sees.why}</p>}
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isSuccess && users.length === 0 && <p className="quiet">Nobody.</p>}
      <ul className="members">
        {users.map((user) => (
          <li key={user.user_id}>
            <Link to="/access" search={{ tab: "users", user: String(user.user_id) }} className="wrap">
              {user.display_name}
            </Link>{" "}
            <span className="quiet wrap">{user.email}</span>
            {!user.is_active && <span className="quiet"> (locked out)</span>}
          </li>
        ))}
      </ul>
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
    </section>
  );
}
