import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { Resource } from "../api/types.ts";
import { catalogEntry, catalogVersions } from "../app/queries.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { lineDiff } from "./line-diff.ts";

/** The versions of a path, and how one differs from another. */
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
    <div className="split">
      <section className="panel scroll">
        {other === undefined ? <p>This is the first version.</p> : <Diff path={path} from={other} to={current} />}
      </section>
      <section className="panel scroll">
        {pages.isError && <ProblemPanel error={pages.error} />}
        <table>
          <thead>
            <tr>
              <th>Version</th>
              <th>Registered</th>
              <th>Compare</th>
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
                <td>
                  {row.version !== current.version && (
                    <Link from="/entry/$" to="." search={(before) => ({ ...before, against: String(row.version) })}>
                      with v{current.version}
                    </Link>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {pages.hasNextPage && (
          <button type="button" onClick={() => void pages.fetchNextPage()}>
            Older ones
          </button>
        )}
      </section>
    </div>
  );
}

function Diff({ path, from, to }: { path: string; from: string; to: Resource }): ReactNode {
  const entry = useQuery(catalogEntry(path, from));
  const lines = useMemo(
    () => (entry.data === undefined ? undefined : lineDiff(entry.data.content, to.content)),
    [entry.data, to.content],
  );
  if (entry.isError) return <ProblemPanel error={entry.error} />;
  if (lines === undefined) return <p className="quiet">Loading …</p>;
  const count = (kind: string) => lines.filter((line) => line.kind === kind).length;
  return (
    <>
      <h2>
        From v{from} to v{to.version}: {count("added")} lines more, {count("removed")} less
      </h2>
      <div className="diff">
        {lines.map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name, and the list is made anew as a whole
          <div key={index} className={line.kind}>
            {line.kind === "added" ? "+ " : line.kind === "removed" ? "- " : "  "}
            {line.text}
          </div>
        ))}
      </div>
    </>
  );
}
