import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { PastCall } from "./history.ts";
import { Inspector } from "./inspector.tsx";
import { Lifecycle } from "./lifecycle.tsx";
import type { McpServer } from "./servers.ts";

/** An MCP server of the catalog: what it offers, what looks after it, and which agents use it. */
export function ServerPanel({
  server,
  agents,
  tool,
  repeated,
  onTool,
  onEnd,
}: {
  server: McpServer;
  agents: readonly string[];
  /** The chosen tool, resource or prompt. */
  tool: string | undefined;
  /** An earlier call, with whose arguments the form begins. */
  repeated: PastCall | undefined;
  onTool(name: string | undefined): void;
  /** A call has ended. */
  onEnd(): void;
}): ReactNode {
  return (
    <section className="panel stack" aria-labelledby="server-title">
      <div>
        <h2 id="server-title" className="wrap">
          {server.path}
        </h2>
        {server.description !== "" && <p className="wrap">{server.description}</p>}
        <p className="row">
          <code className="wrap">{server.endpoint}</code>
          <Link to="/entry/$" params={{ _splat: server.path }} search={{ tab: "document" }}>
            Document
          </Link>
        </p>
      </div>
      <Inspector path={server.path} {...{ tool, repeated, onTool, onEnd }} />
      <Lifecycle server={server} />
      <div>
        <h3>Agents</h3>
        {agents.length === 0 ? (
          <p>
            No agent has it in its scopes. It can be given to an agent with the input <code>server</code>.
          </p>
        ) : (
          <ul className="plain-list">
            {agents.map((agent) => (
              <li key={agent}>
                <Link to="/agents" search={{ agent, server: server.path }}>
                  {agent}
                </Link>
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}
