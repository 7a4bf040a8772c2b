import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { Agent } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { agentStart } from "./call-agent.ts";
import { Console } from "./console.tsx";
import type { PastCall } from "./history.ts";
import { agentTerminal, type McpServer, serverChoices } from "./servers.ts";

const route = getRouteApi("/agents");

interface TerminalProps {
  agent: Agent;
  servers: readonly McpServer[];
  /** Until then the path of the agent's server is not known, only a name for it: calls wait. */
  areServersRead: boolean;
  /** An earlier call, with whose arguments the form begins. */
  repeated: PastCall | undefined;
  /** A call has ended. */
  onEnd(): void;
}

/**
 * An agent with inputs `method`, `tool` and `arguments` wraps an MCP server: what the server offers is listed, inspected and called through
 * it.
 */
export function Terminal({ agent, servers, areServersRead, repeated, onEnd }: TerminalProps): ReactNode {
  const about = useMemo(() => agentTerminal(agent), [agent]);
  const choices = useMemo(() => serverChoices(about, servers), [about, servers]);
  const { server: chosen, tool } = route.useSearch();
  const navigate = route.useNavigate();
  const server = about.takesServer ? (chosen ?? choices.own[0] ?? choices.others[0] ?? "") : "";
  const may = useAllowed("execute", { path: agent.path });
  const start = useMemo(() => agentStart(agent.path), [agent.path]);
  const choose = (change: { server?: string; tool?: string | undefined }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  return (
    <section className="panel stack" aria-labelledby="agent-title">
      <Head agent={agent} about={about} />
      {!about.wraps && <p>It has inputs of its own and wraps no MCP server: run it with its form.</p>}
      {about.wraps && about.takesServer && (
        <ServerChoice {...choices} chosen={server} onChoose={(one) => choose({ server: one, tool: undefined })} />
      )}
      {about.wraps && (
        <Console
          target={{ id: agent.catalog_id, agent: agent.path, server, start, inputs: server === "" ? {} : { server } }}
          may={may}
          isWaiting={about.takesServer && !areServersRead}
          repeated={repeated}
          chosen={tool}
          onChoose={(one) => choose({ tool: one })}
          onEnd={onEnd}
        />
      )}
    </section>
  );
}

/** What the agent is, and the ways to its document. */
function Head({ agent, about }: { agent: Agent; about: ReturnType<typeof agentTerminal> }): ReactNode {
  return (
    <div>
      <h2 id="agent-title" className="wrap">
        {agent.path}
      </h2>
      {about.description !== "" && <p className="wrap">{about.description}</p>}
      <p className="row">
        {about.scopes.map((scope) => (
          <code key={scope} className="tag wrap">
            {scope}
          </code>
        ))}
        <Link to="/entry/$" params={{ _splat: agent.path }} search={{ tab: "document" }}>
          Document
        </Link>
        <Link to="/entry/$" params={{ _splat: agent.path }} search={{ tab: "run" }}>
          Run it with other inputs
        </Link>
      </p>
    </div>
  );
}

function ServerChoice({
  own,
  others,
  chosen,
  onChoose,
}: {
  own: readonly string[];
  others: readonly string[];
  chosen: string;
  onChoose(server: string): void;
}): ReactNode {
  const isKnown = own.includes(chosen) || others.includes(chosen);
  const options = (paths: readonly string[]) => paths.map((path) => <option key={path}>{path}</option>);
  if (own.length + others.length === 0) return <p>No MCP server is registered, and its scopes name none.</p>;
  return (
    <div className="row">
      <label htmlFor="mcp-server">MCP server</label>
      <select id="mcp-server" value={chosen} onChange={(event) => onChoose(event.target.value)}>
        {!isKnown && <option>{chosen}</option>}
        {own.length > 0 && <optgroup label="of its scopes">{options(own)}</optgroup>}
        {others.length > 0 && <optgroup label="others of the catalog">{options(others)}</optgroup>}
      </select>
    </div>
  );
}
