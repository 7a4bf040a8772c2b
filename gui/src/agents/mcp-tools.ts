import { answerOf, api } from "../api/client.ts";

/** A tool that an MCP server offers, as its list says. */
export interface McpTool {
  name: string;
  description: string;
  /** JSON Schema of its arguments. */
  inputSchema: Readonly<Record<string, unknown>>;
}

/** How a call through an agent's playbook ended. */
export interface AgentCall {
  executionId: string;
  status: string;
  result: unknown;
  error: string | undefined;
}

/** How long one request waits for an execution's end, milliseconds. */
const WAIT_MS = 25_000;

/** Runs an agent's playbook and waits for its end as long as it takes, or until the signal aborts. */
export async function callAgent(
  path: string,
  workload: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<AgentCall> {
  const started = await answerOf(
    api.POST("/api/execute", {
      body: { path, resource_kind: "agent", workload: workload as Record<string, never>, wait_ms: WAIT_MS },
      signal,
    }),
  );
  let { status, result, error } = started;
  while (status === "PENDING" || status === "RUNNING" || status === "PAUSED") {
    const answer = await answerOf(
      api.GET("/api/executions/{execution_id}/result", {
        params: { path: { execution_id: started.execution_id }, query: { wait_ms: String(WAIT_MS) } },
        signal,
      }),
    );
    status = answer.status;
    error = answer.error;
    result = isRecord(answer.result) ? answer.result["value"] : undefined;
  }
  return { executionId: started.execution_id, status, result, error: error?.message };
}

/** The tools within what an agent gave for `tools/list`, wherever in it they stand. */
export function toolsOf(result: unknown, depth = 0): McpTool[] {
  if (!isRecord(result) || depth > 4) return [];
  const listed = result["tools"];
  if (Array.isArray(listed)) return listed.filter(isRecord).map(toolOf);
  for (const inner of Object.values(result)) {
    const tools = toolsOf(inner, depth + 1);
    if (tools.length > 0) return tools;
  }
  return [];
}

function toolOf(tool: Record<string, unknown>): McpTool {
  const schema = tool["inputSchema"] ?? tool["input_schema"];
  return {
    name: String(tool["name"]),
    description: typeof tool["description"] === "string" ? tool["description"] : "",
    inputSchema: isRecord(schema) ? schema : {},
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
