import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { Agent } from "../api/types.ts";
import { fieldsOf } from "../catalog/inputs.ts";
import { JsonView } from "../parts/json-view.tsx";
import { Status } from "../parts/status.tsx";
import { type AgentCall, callAgent, type McpTool, toolsOf } from "./mcp-tools.ts";
import { ToolForm } from "./tool-form.tsx";

/** An agent with inputs `method`, `tool` and `arguments` wraps an MCP server: its tools are listed and called through it. */
export function Terminal({ agent }: { agent: Agent }): ReactNode {
  const names = useMemo(() => new Set(fieldsOf(agent.payload).map(({ name }) => name)), [agent.payload]);
  const wraps = names.has("tool") || names.has("method");
  const leaving = useRef(new AbortController());
  useEffect(() => {
    leaving.current = new AbortController();
    const { current } = leaving;
    return () => current.abort();
  }, []);
  const [tools, setTools] = useState<McpTool[]>();
  const [tool, setTool] = useState<McpTool>();
  const call = useMutation({
    mutationFn: (workload: Record<string, unknown>) => callAgent(agent.path, workload, leaving.current.signal),
    onSuccess: ({ result }, workload) => {
      if (workload["method"] === "tools/list") setTools(toolsOf(result));
    },
  });
  return (
    <section className="panel stack">
      <h2>{agent.path}</h2>
      {wraps ? (
        <div className="row">
          <button type="button" disabled={call.isPending} onClick={() => call.mutate({ method: "tools/list" })}>
            List tools
          </button>
          <button type="button" disabled={call.isPending} onClick={() => call.mutate({ method: "health" })}>
            Health
          </button>
        </div>
      ) : (
        <p>
          It has inputs of its own:{" "}
          <Link to="/entry/$" params={{ _splat: agent.path }} search={{ tab: "run" }}>
            run it
          </Link>
        </p>
      )}
      {tools?.length === 0 && <p>The server offers no tool.</p>}
      {tools !== undefined && tools.length > 0 && (
        <label>
          Tool
          <select
            value={tool?.name ?? ""}
            onChange={(event) => setTool(tools.find(({ name }) => name === event.target.value))}
          >
            <option value="">choose one of {tools.length}</option>
            {tools.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      {tool !== undefined && (
        <ToolForm
          key={tool.name}
          tool={tool}
          isBusy={call.isPending}
          onCall={(values) => call.mutate({ method: "tools/call", tool: tool.name, arguments: values })}
        />
      )}
      {call.isPending && <p role="status">The agent is at work …</p>}
      {call.isError && (
        <p role="alert" className="wrap">
          {call.error.message}
        </p>
      )}
      {call.data !== undefined && <Outcome call={call.data} />}
    </section>
  );
}

function Outcome({ call }: { call: AgentCall }): ReactNode {
  return (
    <section className="stack" aria-live="polite">
      <p className="row">
        <Status of={call.status} />
        <Link to="/executions/$executionId" params={{ executionId: call.executionId }}>
          its execution
        </Link>
      </p>
      {call.error !== undefined && <p className="wrap">{call.error}</p>}
      <JsonView key={call.executionId} label="Result" value={call.result ?? null} />
    </section>
  );
}
