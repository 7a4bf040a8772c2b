import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { catalogList } from "../app/queries.ts";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";

const route = getRouteApi("/catalog");
const KINDS = ["playbook", "agent", "mcp"] as const;

/** What is registered: playbooks, agents, MCP servers. */
export function CatalogPage(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const pages = useInfiniteQuery(catalogList(search));
  const [prefix, setPrefix] = useState(search.prefix ?? "");
  useEffect(() => setPrefix(search.prefix ?? ""), [search.prefix]);
  const keep = () => void navigate({ search: { ...search, prefix: prefix.trim() || undefined }, replace: true });
  const rows = pages.data?.pages.flatMap(({ resources }) => resources) ?? [];
  return (
    <div className="stack">
      <div className="row spread">
        <h1>Catalog</h1>
        <Link to="/register" className="button">
          Register …
        </Link>
      </div>
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          keep();
        }}
      >
        <label>
          Path begins with
          <input data-filter value={prefix} onChange={(event) => setPrefix(event.target.value)} onBlur={keep} />
        </label>
        <label>
          Kind
          <select
            value={search.kind ?? ""}
            onChange={(event) => {
              const kind = KINDS.find((name) => name === event.target.value);
              void navigate({ search: { ...search, kind }, replace: true });
            }}
          >
            <option value="">all</option>
            {KINDS.map((kind) => (
              <option key={kind}>{kind}</option>
            ))}
          </select>
        </label>
      </form>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess && rows.length === 0 && (
        <section className="panel">
          <h2>Nothing is registered here</h2>
          <p>
            Write a document <Link to="/register">in the browser</Link>, or{" "}
            <code>flow register playbooks/examples/hello.yaml</code>
          </p>
        </section>
      )}
      {rows.length > 0 && (
        <div className="panel scroll">
          <table>
            <thead>
              <tr>
                <th>Path</th>
                <th>Kind</th>
                <th>Version</th>
                <th>Registered</th>
                <th className="wide">Description</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.path}>
                  <td>
                    <Link to="/entry/$" params={{ _splat: row.path }}>
                      {row.path}
                    </Link>
                  </td>
                  <td>{row.kind}</td>
                  <td className="number">{row.version}</td>
                  <td className="number">
                    <Ago at={row.created_at} />
                  </td>
                  <td className="one wide">{descriptionOf(row.metadata)}</td>
                </tr>
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

function descriptionOf(metadata: Readonly<Record<string, unknown>>): string {
  const description = metadata["description"];
  return typeof description === "string" ? description : "";
}
