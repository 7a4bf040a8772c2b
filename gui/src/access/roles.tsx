import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Role } from "../api/types.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { roleList } from "./queries.ts";

/** What each role gives: permissions, and what with which playbooks. */
export function Roles(): ReactNode {
  const pages = useInfiniteQuery(roleList());
  if (pages.isError) return <ProblemPanel error={pages.error} again={() => void pages.refetch()} />;
  if (pages.isPending) return <p className="quiet">Loading …</p>;
  return (
    <div className="stack">
      {pages.data.pages
        .flatMap((page) => page.roles)
        .map((role) => (
          <RolePanel key={role.name} role={role} />
        ))}
      {pages.hasNextPage && (
        <button type="button" onClick={() => void pages.fetchNextPage()}>
          More
        </button>
      )}
      <p className="quiet">
        Roles are made and changed with <code>flow roles</code>.
      </p>
    </div>
  );
}

function RolePanel({ role }: { role: Role }): ReactNode {
  return (
    <section className="panel stack">
      <h2>
        {role.name} {!role.is_active && <span className="quiet">(not in force)</span>}
      </h2>
      {role.description !== null && <p className="wrap">{role.description}</p>}
      {role.permissions.length > 0 && <p className="quiet">{role.permissions.join(", ")}</p>}
      {role.playbooks.length > 0 && (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th>Playbooks</th>
                <th>But not</th>
                <th>May</th>
              </tr>
            </thead>
            <tbody>
              {role.playbooks.map((rule) => (
                <tr key={rule.permission_id}>
                  <td className="mono wrap">{rule.playbook_path ?? rule.allow_pattern}</td>
                  <td className="mono wrap">{rule.deny_pattern}</td>
                  <td>
                    {[rule.can_view && "see", rule.can_execute && "run", rule.can_modify && "change"]
                      .filter((word) => word !== false)
                      .join(", ")}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
