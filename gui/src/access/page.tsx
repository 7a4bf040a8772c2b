import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ACCESS_TABS, type AccessTab } from "../app/router.tsx";
import { AuditLog } from "./audit-log.tsx";
import { Roles } from "./roles.tsx";
import { Users } from "./users.tsx";

const route = getRouteApi("/access");
const TITLES: Record<AccessTab, string> = { users: "Users", roles: "Roles", audit: "Audit log" };

/** Who may do what, and who did what. The server answers those alone who may know. */
export function AccessPage(): ReactNode {
  const { tab = "users" } = route.useSearch();
  return (
    <div className="stack">
      <h1>Access</h1>
      <nav className="tabs" aria-label="Views">
        {ACCESS_TABS.map((name) => (
          <Link key={name} to="/access" search={{ tab: name }} aria-current={name === tab ? "page" : undefined}>
            {TITLES[name]}
          </Link>
        ))}
      </nav>
      {tab === "users" && <Users />}
      {tab === "roles" && <Roles />}
      {tab === "audit" && <AuditLog />}
    </div>
  );
}
