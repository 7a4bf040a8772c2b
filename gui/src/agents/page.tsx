import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Bot } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import "../styles/catalog.css";
import "../styles/agents.css";
import { agentList, catalogEntry, catalogList } from "../api/queries.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import type { PastCall } from "./history.ts";
import { requestedBy } from "./offers.ts";
import { PastCalls } from "./past-calls.tsx";
import { ServerPanel } from "./server-panel.tsx";
import { type AgentTerminal, agentTerminal, isNamed, type McpServer, mcpServer } from "./servers.ts";
import { Terminal } from "./terminal.tsx";

const route = getRouteApi("/agents");
/** MCP servers whose documents are read for this page. The catalog lists any number. */
const SERVERS_MAX = 50;

/** Agents and MCP servers: what they offer, called through playbooks, so that every call is an execution. */
export function AgentsPage(): ReactNode {
  const { agent: agentPath, server: serverPath, tool: chosen } = route.useSearch();
  const agents = useQuery(agentList());
  const { servers: all, areRead } = useServers();
  const servers = all.filter(({ isVisible }) => isVisible);
  const [, setEnded] = useState(0);
  const [repeated, setRepeated] = useState<PastCall>();
  const navigate = route.useNavigate();
  const repeat = (call: PastCall) => {
    setRepeated(call);
    const tool = call.workload === undefined ? undefined : requestedBy(call.workload)?.name;
    void navigate({ search: { agent: call.agent || undefined, server: call.server, tool } });
  };
  const entries = useMemo(() => (agents.data?.entries ?? []).map(agentTerminal), [agents.data]);
  const agent = agents.data?.entries.find(({ path }) => path === agentPath);
  // One that is not listed is found by its address: its page in the catalog leads here.
  const server = all.find(({ path }) => path === serverPath);
  const isEmpty = agents.isSuccess && entries.length === 0 && servers.length === 0 && server === undefined;
  return (
    <div className="stack">
      <h1>Agents</h1>
      {agents.isError && <ProblemPanel error={agents.error} again={() => void agents.refetch()} />}
      {agents.isPending && <p className="quiet">Loading …</p>}
      {isEmpty && <NoAgents />}
      {!isEmpty && agents.isSuccess && (
        <div className="agents-split">
          <Choice agents={entries} servers={servers} />
          <div className="stack">
            {agent !== undefined && (
              <Terminal
                key={`${agent.catalog_id} ${repeated?.executionId}`}
                agent={agent}
                repeated={repeated?.agent === agent.path ? repeated : undefined}
                servers={servers}
                areServersRead={areRead}
                onEnd={() => setEnded(Date.now())}
              />
            )}
            {agent === undefined && server !== undefined && (
              <ServerPanel
                key={server.path}
                server={server}
                agents={agentsOf(server, entries)}
                tool={chosen}
                repeated={repeated?.agent === "" && repeated.server === server.path ? repeated : undefined}
                onTool={(tool) => void navigate({ search: (before) => ({ ...before, tool }), replace: true })}
                onEnd={() => setEnded(Date.now())}
              />
            )}
            {agent === undefined && server === undefined && (
              <section className="panel">
                {agentPath === undefined && serverPath === undefined ? (
                  <p>Choose an agent or an MCP server to list and call what it offers.</p>
                ) : (
                  <p className="wrap">
                    No agent or server that you may see is called {agentPath ?? serverPath}. It may be hidden from
                    terminals.
                  </p>
                )}
              </section>
            )}
            <PastCalls onRepeat={repeat} />
          </div>
        </div>
      )}
    </div>
  );
}

function NoAgents(): ReactNode {
  return (
    <section className="panel empty">
      <Bot className="icon" aria-hidden="true" />
      <h2>No agents to show</h2>
      <p>
        An agent is a playbook with <code>metadata.agent: true</code>; <code>metadata.terminal.visible: false</code>{" "}
        hides one. <Link to="/register">Register one</Link>, such as <code>playbooks/examples/mcp_agent.yaml</code>.
      </p>
    </section>
  );
}

/** The MCP servers of the catalog; false while some of them may be missing. */
function useServers(): { servers: readonly McpServer[]; areRead: boolean } {
  const pages = useInfiniteQuery(catalogList({ kind: "mcp" }));
  const rows = pages.data?.pages.flatMap(({ resources }) => resources) ?? [];
  const documents = useQueries({
    queries: rows.slice(0, SERVERS_MAX).map(({ path, version }) => catalogEntry(path, String(version))),
  });
  const servers = documents.flatMap(({ data }) => (data === undefined ? [] : [mcpServer(data)]));
  return { servers, areRead: !pages.isPending && documents.every(({ isPending }) => !isPending) };
}

function agentsOf(server: McpServer, agents: readonly AgentTerminal[]): string[] {
  return agents.filter(({ servers }) => servers.some((name) => isNamed(server.path, name))).map(({ path }) => path);
}

function Choice({ agents, servers }: { agents: readonly AgentTerminal[]; servers: readonly McpServer[] }): ReactNode {
  const { agent, server } = route.useSearch();
  const [text, setText] = useState("");
  const isLike = (words: string) => words.toLowerCase().includes(text.trim().toLowerCase());
  const shown = agents.filter(({ path, description, scopes }) => isLike(`${path} ${description} ${scopes.join(" ")}`));
  const shownServers = servers.filter(({ path, description }) => isLike(`${path} ${description}`));
  const workspaces = [...new Set(shown.map(({ workspace }) => workspace))].sort();
  return (
    <nav aria-label="Agents and MCP servers" className="panel stack agent-list">
      <label>
        <span className="unseen">Filter</span>
        <input data-filter placeholder="Filter" value={text} onChange={(event) => setText(event.target.value)} />
      </label>
      {workspaces.map((workspace) => (
        <div key={workspace}>
          <h2 className="wrap">{workspace === "" ? "Agents" : workspace}</h2>
          <ul className="plain-list">
            {shown
              .filter((one) => one.workspace === workspace)
              .map(({ path, description }) => (
                <li key={path}>
                  <Link
                    to="/agents"
                    search={{ agent: path }}
                    activeOptions={{ exact: true }}
                    aria-current={path === agent ? "true" : undefined}
                  >
                    <span className="wrap">{path}</span>
                    <span className="quiet wrap">{description}</span>
                  </Link>
                </li>
              ))}
          </ul>
        </div>
      ))}
      {shownServers.length > 0 && (
        <div>
          <h2>MCP servers</h2>
          <ul className="plain-list">
            {shownServers.map(({ path, description }) => (
              <li key={path}>
                <Link
                  to="/agents"
                  search={{ server: path }}
                  activeOptions={{ exact: true }}
                  aria-current={agent === undefined && path === server ? "true" : undefined}
                >
                  <span className="wrap">{path}</span>
                  <span className="quiet wrap">{description}</span>
                </Link>
              </li>
            ))}
          </ul>
        </div>
      )}
      {shown.length + shownServers.length === 0 && <p className="quiet">No matches.</p>}
    </nav>
  );
}
