import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Agent } from "../api/types.ts";
import { agentList, catalogList } from "../app/queries.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { Lifecycle } from "./lifecycle.tsx";
import { Terminal } from "./terminal.tsx";

const route = getRouteApi("/agents");

/** Agents and MCP servers: what they offer, called through playbooks, so that every call is an execution. */
export function AgentsPage(): ReactNode {
  const { agent: chosenPath } = route.useSearch();
  const agents = useQuery(agentList());
  const servers = useInfiniteQuery(catalogList({ kind: "mcp" }));
  const entries = agents.data?.entries ?? [];
  const chosen = entries.find(({ path }) => path === chosenPath);
  return (
    <div className="stack">
      <h1>Agents</h1>
      {agents.isError && <ProblemPanel error={agents.error} again={() => void agents.refetch()} />}
      {agents.isPending && <p className="quiet">Loading …</p>}
      {agents.isSuccess && entries.length === 0 && (
        <section className="panel">
          <h2>No agent is shown here</h2>
          <p>
            An agent is a playbook with <code>metadata.agent: true</code>; <code>metadata.terminal.visible: false</code>{" "}
            hides one.
          </p>
        </section>
      )}
      <div className="split agents">
        <nav aria-label="Agents" className="panel stack">
          {entries.map((entry) => (
            <Link
              key={entry.path}
              to="/agents"
              search={{ agent: entry.path }}
              aria-current={entry.path === chosenPath ? "true" : undefined}
            >
              {entry.path}
              <span className="quiet"> {descriptionOf(entry)}</span>
            </Link>
          ))}
        </nav>
        <div className="stack">
          {chosen === undefined ? (
            entries.length > 0 && <p className="quiet">Choose an agent.</p>
          ) : (
            <Terminal key={chosen.catalog_id} agent={chosen} />
          )}
        </div>
      </div>
      <Lifecycle servers={servers.data?.pages.flatMap(({ resources }) => resources) ?? []} />
    </div>
  );
}

function descriptionOf({ payload }: Agent): string {
  const metadata = payload["metadata"] as Record<string, unknown> | undefined;
  return typeof metadata?.["description"] === "string" ? metadata["description"] : "";
}
