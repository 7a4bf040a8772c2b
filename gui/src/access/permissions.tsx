import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { ProblemPanel } from "../parts/problem.tsx";
import { permissionList, roleList } from "./queries.ts";

/** The global permissions, and which roles have them. */
export function Permissions(): ReactNode {
  const known = useQuery(permissionList());
  const pages = useInfiniteQuery(roleList());
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages;
  // A role that has not been loaded yet would look like one without permissions.
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const roles = pages.data?.pages.flatMap((page) => page.roles) ?? [];
  const failed = known.error ?? pages.error;
  if (failed !== null) {
    const again = () => void Promise.all([known.refetch(), pages.refetch()]);
    return <ProblemPanel error={failed} again={again} />;
  }
  if (known.data === undefined || pages.isPending || hasNextPage) return <p className="quiet">Loading …</p>;
  return (
    <div className="panel scroll">
      <table>
        <thead>
          <tr>
            <th>Permission</th>
            <th>Lets one</th>
            <th>Given by</th>
          </tr>
        </thead>
        <tbody>
          {known.data.permissions.map(({ name, description }) => {
            const giving = roles.filter((role) => role.permissions.includes(name));
            return (
              <tr key={name}>
                <td className="mono">{name}</td>
                <td className="wrap">{description}</td>
                <td>
                  {giving.length === 0 && <span className="quiet">no role</span>}
                  <div className="row">
                    {giving.map((role) => (
                      <Link key={role.name} to="/access" search={{ tab: "roles", role: role.name }}>
                        {role.name}
                        {!role.is_active && " (inactive)"}
                      </Link>
                    ))}
                  </div>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
