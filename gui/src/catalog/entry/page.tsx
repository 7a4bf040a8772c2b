import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Play, SquareTerminal } from "lucide-react";
import { lazy, type ReactNode, Suspense } from "react";
import "../../styles/catalog.css";
import { catalogEntry } from "../../api/queries.ts";
import type { Resource } from "../../api/types.ts";
import { useAllowed } from "../../parts/allowed.ts";
import { AllowedLink } from "../../parts/allowed-link.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { Ago } from "../../parts/now.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { descriptionOf } from "../catalog-table.tsx";
import { kindText } from "../kinds.ts";
import { RunForm } from "../run/form.tsx";
import { useSource } from "../source/use-source.ts";
import { SourceView } from "../source/view.tsx";
import { EntryCredentials } from "./credentials.tsx";
import { EntryExecutions } from "./executions.tsx";
import { EntryKeychain } from "./keychain.tsx";
import { EntryOverview } from "./overview.tsx";
import { EntryPaused, PauseEntry } from "./pause.tsx";
import { ENTRY_TABS, type EntryTab } from "./tabs.ts";
import { Versions } from "./versions.tsx";

const route = getRouteApi("/entry/$");
const PlaybookGraph = lazy(() =>
  import("../../execution/graph/graph.tsx").then(({ PlaybookGraph: it }) => ({ default: it })),
);
const TITLES: Record<EntryTab, string> = {
  overview: "Overview",
  run: "Run",
  document: "Document",
  graph: "Graph",
  versions: "Versions",
  executions: "Executions",
  credentials: "Credentials",
  keychain: "Keychain",
};
/** The parts of the page of what does not run: an MCP server, a trigger. */
const OF_OTHERS: readonly EntryTab[] = ["document", "versions", "credentials"];

const isRun = (kind: string) => kind === "playbook" || kind === "agent";

/** One entry of the catalog: run it, read it, see how it came to be. */
export function EntryPage(): ReactNode {
  const { _splat: path = "" } = route.useParams();
  const { version, tab, against, from } = route.useSearch();
  const entry = useQuery(catalogEntry(path, version ?? "latest"));
  if (entry.isError) return <ProblemPanel error={entry.error} again={() => void entry.refetch()} />;
  if (entry.data === undefined) return <p className="quiet">Loading …</p>;
  const tabs = isRun(entry.data.kind) ? ENTRY_TABS : OF_OTHERS;
  // Who comes with a run's inputs is about to run it again.
  const first = isRun(entry.data.kind) && from !== undefined ? "run" : (tabs[0] ?? "document");
  const shown = tab !== undefined && tabs.includes(tab) ? tab : first;
  return (
    <div className="stack">
      <Head entry={entry.data} isOld={version !== undefined} />
      <EntryPaused entry={entry.data} />
      <nav className="tabs" aria-label="Views">
        {tabs.map((name) => (
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
        {shown === "overview" && <EntryOverview entry={entry.data} />}
        {shown === "run" && <RunForm key={entry.data.catalog_id} entry={entry.data} from={from} />}
        {shown === "document" && <EntrySource key={entry.data.catalog_id} content={entry.data.content} />}
        {shown === "graph" && <PlaybookGraph payload={entry.data.payload} />}
        {shown === "versions" && <Versions path={path} current={entry.data} against={against} />}
        {shown === "executions" && <EntryExecutions path={path} />}
        {shown === "credentials" && <EntryCredentials payload={entry.data.payload} />}
        {shown === "keychain" && <EntryKeychain entry={entry.data} />}
      </Suspense>
    </div>
  );
}

function EntrySource({ content }: { content: string }): ReactNode {
  return <SourceView state={useSource(content)} text={content} />;
}

function Head({ entry, isOld }: { entry: Resource; isOld: boolean }): ReactNode {
  const description = descriptionOf(entry.metadata);
  const may = useAllowed("modify", { path: entry.path });
  return (
    <div className="row spread">
      <div className="stack tight">
        <h1 className="row">
          <span className="wrap">{entry.path}</span> <span className="quiet">v{entry.version}</span>
        </h1>
        <p className="quiet">
          {kindText(entry.kind)}, registered <Ago at={entry.created_at} />, catalog id <code>{entry.catalog_id}</code>
          {isOld && (
            <>
              {" · "}
              <Link from="/entry/$" to="." search={(before) => ({ ...before, version: undefined })}>
                to the newest version
              </Link>
            </>
          )}
        </p>
        {description !== "" && <p className="wrap">{description}</p>}
      </div>
      <div className="row">
        <CopyButton label="Copy text" text={entry.content} />
        {isRun(entry.kind) && entry.paused === undefined && <PauseEntry path={entry.path} />}
        <AllowedLink may={may} label="Edit …">
          <Link to="/register" search={{ from: entry.path }} className="button">
            Edit …
          </Link>
        </AllowedLink>
        {entry.kind === "mcp" && (
          <Link to="/agents" search={{ server: entry.path }} className="button main">
            <SquareTerminal className="icon" aria-hidden="true" />
            Inspect …
          </Link>
        )}
        {isRun(entry.kind) && (
          <Link from="/entry/$" to="." search={(before) => ({ ...before, tab: "run" })} className="button main">
            <Play className="icon" aria-hidden="true" />
            Run …
          </Link>
        )}
      </div>
    </div>
  );
}
