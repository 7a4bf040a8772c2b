import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import { catalogEntry } from "../app/queries.ts";
import { ENTRY_TABS, type EntryTab } from "../app/router.tsx";
import { Ago } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { RunForm } from "./run-form.tsx";
import { Versions } from "./versions.tsx";

const route = getRouteApi("/entry/$");
const Editor = lazy(() => import("../parts/editor.tsx"));
const PlaybookGraph = lazy(() => import("../execution/graph.tsx").then(({ PlaybookGraph: it }) => ({ default: it })));
const TITLES: Record<EntryTab, string> = {
  run: "Run",
  document: "Document",
  graph: "Graph",
  versions: "Versions",
  executions: "Executions",
};

/** One entry of the catalog: run it, read it, see how it came to be. */
export function EntryPage(): ReactNode {
  const { _splat: path = "" } = route.useParams();
  const { version, tab, against } = route.useSearch();
  const entry = useQuery(catalogEntry(path, version ?? "latest"));
  if (entry.isError) return <ProblemPanel error={entry.error} again={() => void entry.refetch()} />;
  if (entry.data === undefined) return <p className="quiet">Loading …</p>;
  const canRun = entry.data.kind !== "mcp";
  const shown = tab ?? (canRun ? "run" : "document");
  const description = entry.data.metadata["description"];
  return (
    <div className="stack">
      <div className="row spread">
        <div>
          <h1 className="row">
            <span className="wrap">{entry.data.path}</span> <span className="quiet">v{entry.data.version}</span>
          </h1>
          <p className="quiet">
            {entry.data.kind}, registered <Ago at={entry.data.created_at} />
            {version !== undefined && (
              <>
                {" · "}
                <Link to="." search={{ tab }}>
                  to the newest version
                </Link>
              </>
            )}
          </p>
          {typeof description === "string" && <p className="wrap">{description}</p>}
        </div>
        <Link to="/register" search={{ from: entry.data.path }} className="button">
          Edit …
        </Link>
      </div>
      <nav className="tabs" aria-label="Views">
        {ENTRY_TABS.filter((name) => canRun || name === "document" || name === "versions").map((name) => (
          <Link
            key={name}
            from="/entry/$"
            to="."
            search={(before) => ({ ...before, tab: name })}
            aria-current={name === shown ? "page" : undefined}
          >
            {TITLES[name]}
          </Link>
        ))}
      </nav>
      <Suspense fallback={<p className="quiet">Loading …</p>}>
        {shown === "run" && <RunForm key={entry.data.catalog_id} entry={entry.data} />}
        {shown === "document" && <Editor label="Document" value={entry.data.content} />}
        {shown === "graph" && <PlaybookGraph payload={entry.data.payload} steps={[]} />}
        {shown === "versions" && <Versions path={path} current={entry.data} against={against} />}
        {shown === "executions" && (
          <p>
            <Link to="/executions" search={{ path }}>
              Executions of {path}
            </Link>
          </p>
        )}
      </Suspense>
    </div>
  );
}
