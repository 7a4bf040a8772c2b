import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { queries } from "../api/queries.ts";
import type { Agent } from "../api/types.ts";
import { useAllowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Outcome, Running } from "./call-view.tsx";
import { type McpTool, toolsOf } from "./mcp-tools.ts";
import { agentTerminal, type McpServer, serverChoices } from "./servers.ts";
import { ToolForm } from "./tool-form.tsx";
import { type AgentCallRequest, useAgentCall } from "./use-agent-call.ts";

const route = getRouteApi("/agents");

/** Lists are cached while the page is open: each list is an execution. */
function knownTools(agent: string, server: string) {
  return {
    queryKey: ["tools", agent, server],
    queryFn: () => Promise.resolve<McpTool[] | null>(null),
    enabled: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  };
}

interface TerminalProps {
  agent: Agent;
  servers: readonly McpServer[];
  /** Until then the path of the agent's server is not known, only a name for it: calls wait. */
  areServersRead: boolean;
  /** A call has ended. */
  onEnd(): void;
}

/** An agent with inputs `method`, `tool` and `arguments` wraps an MCP server: its tools are listed and called through it. */
export function Terminal({ agent, servers, areServersRead, onEnd }: TerminalProps): ReactNode {
  const about = useMemo(() => agentTerminal(agent), [agent]);
  const choices = useMemo(() => serverChoices(about, servers), [about, servers]);
  const { server: chosen, tool: toolName } = route.useSearch();
  const navigate = route.useNavigate();
  const server = about.takesServer ? (chosen ?? choices.own[0] ?? choices.others[0] ?? "") : "";
  const known = knownTools(agent.catalog_id, server);
  const tools = useQuery(known).data ?? undefined;
  const tool = tools?.find(({ name }) => name === toolName);
  const [shown, setShown] = useState("");
  const may = useAllowed("execute", { path: agent.path });
  const { call, cancel, progress } = useAgentCall(agent.path, ({ workload }, { result, status }) => {
    onEnd();
    if (workload["method"] !== "tools/list" || status !== "COMPLETED") return;
    queries.setQueryData(knownTools(agent.catalog_id, String(workload["server"] ?? "")).queryKey, toolsOf(result));
  });
  const ask = (what: string, workload: JsonObject) => {
    setShown(`${server} ${what}`);
    call.mutate(requestOf(server, what, workload));
  };
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
        <Methods
          may={may}
          isBusy={call.isPending || (about.takesServer && !areServersRead)}
          isListed={tools !== undefined}
          onMethod={(method) => ask(method, { method })}
        />
      )}
      {tools?.length === 0 && <p>The server offers no tool.</p>}
      {tools !== undefined && tools.length > 0 && (
        <ToolChoice tools={tools} chosen={tool?.name ?? ""} onChoose={(name) => choose({ tool: name })} />
      )}
      {tool !== undefined && (
        <ToolForm
          key={`${server} ${tool.name}`}
          tool={tool}
          may={may}
          isBusy={call.isPending}
          onCall={(values) => ask(tool.name, { method: "tools/call", tool: tool.name, arguments: values })}
        />
      )}
      <Progress call={call} cancel={cancel} progress={progress} />
      {call.data !== undefined && !call.isPending && (
        <div className="stack">
          <h3 className="wrap">Answer of {shown.trim()}</h3>
          <Outcome call={call.data} isBrief={call.variables?.what === "tools/list" && tools !== undefined} />
        </div>
      )}
    </section>
  );
}

/** A call of the agent, with the server that it is to reach where it takes one. */
function requestOf(server: string, what: string, workload: JsonObject): AgentCallRequest {
  return server === "" ? { what, server: undefined, workload } : { what, server, workload: { server, ...workload } };
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

/** The calls that need no tool. */
function Methods({
  may,
  isBusy,
  isListed,
  onMethod,
}: {
  may: ReturnType<typeof useAllowed>;
  isBusy: boolean;
  /** The tools are known already. */
  isListed: boolean;
  onMethod(method: "tools/list" | "health"): void;
}): ReactNode {
  return (
    <div className="row">
      <AllowedButton may={may} disabled={isBusy} onClick={() => onMethod("tools/list")}>
        {isListed ? "List tools again" : "List tools"}
      </AllowedButton>
      <AllowedButton may={may} disabled={isBusy} onClick={() => onMethod("health")}>
        Health
      </AllowedButton>
    </div>
  );
}

/** The call that runs, with a way to stop it, and what went wrong. */
function Progress({ call, cancel, progress }: ReturnType<typeof useAgentCall>): ReactNode {
  return (
    <>
      {call.isPending && (
        <Running
          progress={progress}
          isCancelling={cancel.isPending}
          onCancel={(executionId) => cancel.mutate(executionId)}
        />
      )}
      {cancel.isError && <ProblemPanel error={cancel.error} />}
      {call.isError && <ProblemPanel error={call.error} />}
    </>
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

function ToolChoice({
  tools,
  chosen,
  onChoose,
}: {
  tools: readonly McpTool[];
  chosen: string;
  onChoose(name: string | undefined): void;
}): ReactNode {
  return (
    <div className="row">
      <label htmlFor="mcp-tool">Tool</label>
      <select id="mcp-tool" value={chosen} onChange={(event) => onChoose(event.target.value || undefined)}>
        <option value="">choose one of {tools.length}</option>
        {tools.map(({ name, title }) => (
          <option key={name} value={name}>
            {title === "" || title === name ? name : `${name}: ${title}`}
          </option>
        ))}
      </select>
    </div>
  );
}
