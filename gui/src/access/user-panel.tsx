import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api } from "../api/client.ts";
import { me } from "../api/queries.ts";
import type { User } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Confirm } from "./confirm.tsx";
import { userDetail } from "./queries.ts";
import { UserRoles } from "./user-roles.tsx";
import { UserSessions } from "./user-sessions.tsx";

/** One user: their identity, roles, sessions, and how to lock them out. */
export function UserPanel({ id }: { id: string }): ReactNode {
  const user = useQuery(userDetail(id));
  return (
    <div className="stack">
      <p>
        <Link to="/access" search={{ tab: "users" }}>
          ← All users
        </Link>
      </p>
      {user.isError && <ProblemPanel error={user.error} again={() => void user.refetch()} />}
      {user.isPending && <p className="quiet">Loading …</p>}
      {user.isSuccess && (
        <>
          <Facts user={user.data} />
          <UserRoles user={user.data} />
          <UserSessions user={user.data} />
        </>
      )}
    </div>
  );
}

function Facts({ user }: { user: User }): ReactNode {
  const self = useQuery(me()).data;
  const isSelf = self?.kind === "user" && self.user_id === user.user_id;
  return (
    <section className="panel stack">
      <div className="row spread">
        <h2 className="wrap">
          {user.display_name} {isSelf && <span className="quiet">(you)</span>}
        </h2>
        <State user={user} isSelf={isSelf} />
      </div>
      <dl className="facts">
        <dt>Address</dt>
        <dd>{user.email}</dd>
        <dt>State</dt>
        <dd className={`status tone-${user.is_active ? "good" : "bad"}`}>
          {user.is_active ? "✓ active" : "⊘ locked out: no session, no login"}
        </dd>
        <dt>Last login</dt>
        <dd>{user.last_login_at === null ? "never" : <Ago at={user.last_login_at} />}</dd>
        <dt>Known by</dt>
        <dd>{user.issuer ?? "not yet: the first provider that vouches for the address"}</dd>
        <dt>User id</dt>
        <dd className="mono">{user.user_id}</dd>
      </dl>
      <p>
        <Link to="/access" search={{ tab: "audit", actor: user.email }}>
          Their actions
        </Link>
        {" · "}
        <Link to="/access" search={{ tab: "audit", resource: `user/${user.email}` }}>
          Changes to them
        </Link>
      </p>
    </section>
  );
}

function State({ user, isSelf }: { user: User; isSelf: boolean }): ReactNode {
  const may = useAllowed("manage_users");
  const navigate = useNavigate();
  const path = { user: String(user.user_id) };
  const change = (isActive: boolean) =>
    api("PUT /api/auth/users/:user", { params: path, body: { is_active: isActive } });
  const remove = async () => {
    await api("DELETE /api/auth/users/:user", { params: path });
    await navigate({ to: "/access", search: { tab: "users" } });
  };
  return (
    <div className="row">
      {user.is_active ? (
        <Confirm
          label="Lock out …"
          title={`Lock ${user.email} out?`}
          action="Lock out"
          may={may}
          run={() => change(false)}
        >
          {isSelf
            ? "That is you: you are logged out at once, and another administrator has to let you in again."
            : LOCKING}
        </Confirm>
      ) : (
        <Confirm
          label="Let in …"
          title={`Let ${user.email} in again?`}
          action="Let in"
          may={may}
          run={() => change(true)}
        >
          They can log in again, with the roles shown here.
        </Confirm>
      )}
      <Confirm label="Delete …" title={`Delete ${user.email}?`} action="Delete" may={may} run={remove}>
        Their sessions and roles are gone. What they did stays in the audit log. Who logs in again with this address
        begins without a role: lock them out to keep them away.
      </Confirm>
    </div>
  );
}

const LOCKING =
  "Their sessions end with the next call, and they cannot log in. What they have started goes on running.";
