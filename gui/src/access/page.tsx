import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Allowed, useAllowed } from "../parts/allowed.ts";
import { AuditLog } from "./audit-log.tsx";
import { Check } from "./check.tsx";
import { Permissions } from "./permissions.tsx";
import { RolePanel } from "./role-panel.tsx";
import { Roles } from "./roles.tsx";
import { ACCESS_TABS, type AccessTab } from "./tabs.ts";
import { UserPanel } from "./user-panel.tsx";
import { Users } from "./users.tsx";
import "../styles/access.css";

const route = getRouteApi("/access");
const TITLES: Record<AccessTab, string> = {
  users: "Users",
  roles: "Roles",
  permissions: "Permissions",
  check: "Who may?",
  audit: "Audit log",
};

/** Users, roles and the audit log. The server answers only users with the permissions. */
export function AccessPage(): ReactNode {
  const { tab: chosen, user, role } = route.useSearch();
  const users = useAllowed("manage_users");
  const roles = useAllowed("manage_roles");
  const audit = useAllowed("view_audit");
  const either: Allowed = users.allowed ? users : roles;
  const may: Record<AccessTab, Allowed> = { users, roles: either, permissions: either, check: users, audit };
  const tab = chosen ?? ACCESS_TABS.find((name) => may[name].allowed) ?? "users";
  return (
    <div className="stack">
      <h1>Access</h1>
      <nav className="tabs" aria-label="Views">
        {ACCESS_TABS.filter((name) => may[name].allowed || name === tab).map((name) => (
          <Link key={name} to="/access" search={{ tab: name }} aria-current={name === tab ? "page" : undefined}>
            {TITLES[name]}
          </Link>
        ))}
      </nav>
      {may[tab].allowed ? (
        <Tab tab={tab} user={user} role={role} />
      ) : (
        <section className="panel tone-warn">
          <h2>You may not see this</h2>
          <p className="wrap">{may[tab].why}</p>
        </section>
      )}
    </div>
  );
}

function Tab({ tab, user, role }: { tab: AccessTab; user: string | undefined; role: string | undefined }): ReactNode {
  if (tab === "users") return user === undefined ? <Users /> : <UserPanel key={user} id={user} />;
  if (tab === "roles") return role === undefined ? <Roles /> : <RolePanel key={role} name={role} />;
  if (tab === "permissions") return <Permissions />;
  return tab === "check" ? <Check /> : <AuditLog />;
}
