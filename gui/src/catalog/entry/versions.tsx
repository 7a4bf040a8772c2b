import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { catalogEntry, catalogVersions } from "../../api/queries.ts";
import type { CatalogItem, Resource } from "../../api/types.ts";
import { Ago } from "../../parts/now.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { DiffView } from "../diff/view.tsx";
import { RollBack } from "./roll-back.tsx";

const route = getRouteApi("/entry/$");

/** The versions of a path, and how any of them differs from any other. */
export function Versions({
  path,
  current,
  against,
}: {
  path: string;
  current: Resource;
  against: string | undefined;
}): ReactNode {
  const pages = useInfiniteQuery(catalogVersions(path));
  const rows = pages.data?.pages.flatMap(({ versions }) => versions) ?? [];
  const other = against ?? (current.version > 1 ? String(current.version - 1) : undefined);
  return (
    <div className="split versions">
      <section className="panel stack">
        {other === undefined ? (
          <div className="row spread">
            <p>This is the first version.</p>
            {rows[0] !== undefined && current.version < rows[0].version && <RollBack old={current} />}
          </div>
        ) : (
          <>
            <div className="row spread">
              <Choice rows={rows} from={other} to={current.version} />
              {rows[0] !== undefined && current.version < rows[0].version && <RollBack old={current} />}
            </div>
            <Diff path={path} from={other} to={current} />
          </>
        )}
      </section>
      <section className="panel scroll">
        {pages.isError && <ProblemPanel error={pages.error} />}
        <table>
          <thead>
            <tr>
              <th>Version</th>
              <th>Registered</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.version} aria-selected={row.version === current.version}>
                <td>
                  <Link from="/entry/$" to="." search={(before) => ({ ...before, version: String(row.version) })}>
                    {row.version}
                  </Link>
                </td>
                <td>
                  <Ago at={row.created_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {pages.hasNextPage && (
          <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Older ones
          </button>
        )}
      </section>
    </div>
  );
}

/** Which two are compared. A version that is not loaded yet stays among the choices. */
function Choice({ rows, from, to }: { rows: readonly CatalogItem[]; from: string; to: number }): ReactNode {
  const navigate = route.useNavigate();
  const known = new Set([...rows.map(({ version }) => version), Number(from), to]);
  const options = [...known].sort((one, other) => other - one);
  const choose = (change: { version?: string; against?: string }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  return (
    <div className="row">
      <label>
        From
        <select value={from} onChange={(event) => choose({ against: event.target.value })}>
          {options.map((version) => (
            <option key={version} value={version}>
              v{version}
            </option>
          ))}
        </select>
      </label>
      <label>
        to
        <select value={to} onChange={(event) => choose({ version: event.target.value, against: from })}>
          {options.map((version) => (
            <option key={version} value={version}>
              v{version}
            </option>
          ))}
        </select>
      </label>
      <button type="button" onClick={() => choose({ version: from, against: String(to) })}>
        Swap
      </button>
    </div>
  );
}

function Diff({ path, from, to }: { path: string; from: string; to: Resource }): ReactNode {
  const entry = useQuery(catalogEntry(path, from));
  if (entry.isError) return <ProblemPanel error={entry.error} />;
  if (entry.data === undefined) return <p className="quiet">Loading …</p>;
  const label = `From version ${from} to version ${to.version}`;
  return <DiffView before={entry.data.content} after={to.content} label={label} />;
}
