import { LifecycleAnswer, LifecycleBody, McpCallAnswer, McpCallBody, McpResourceCallBody } from "../api/catalog.ts";
import { contract } from "./contract.ts";

/** Calls of MCP servers, and the life of those that playbooks look after (interface specification, Results and lifecycle). */
export const MCP_LIFECYCLE_ROUTES = {
  lifecycle: contract({
    method: "post",
    path: "/api/mcp/mcp/:resource_path{.+}/lifecycle/:action",
    summary: "Starts the playbook that an MCP resource names for an action, such as deploy",
    access: "operator",
    user: { action: "execute", of: "asked" },
    body: LifecycleBody,
    bodyOptional: true,
    answer: LifecycleAnswer,
    refusals: [404, 422],
  }),
  call: contract({
    method: "post",
    path: "/api/mcp/mcp/:resource_path{.+}/call",
    summary:
      "Calls an MCP resource once, by an execution of one task. With an Idempotency-Key it calls once, however often it is sent",
    access: "operator",
    user: { action: "execute", of: "asked" },
    body: McpCallBody,
    answer: McpCallAnswer,
    refusals: [404, 409, 413, 422, 429],
  }),
  callByName: contract({
    method: "post",
    path: "/api/mcp/call",
    summary:
      "The same call, with the resource in the body: for every path, also one that ends in `/lifecycle`, whose address would be that of an action",
    access: "operator",
    user: { action: "execute", of: "asked" },
    body: McpResourceCallBody,
    answer: McpCallAnswer,
    refusals: [404, 409, 413, 422, 429],
  }),
} as const;

/** The server as an MCP server. */
export const MCP_ROUTES = {
  post: contract({
    method: "post",
    path: "/mcp",
    summary:
      "The server as an MCP server (Model Context Protocol, streamable HTTP): messages of a client. Each agent that the caller may execute is a tool",
    access: "operator",
    user: "session",
    contentType: "text/event-stream",
    refusals: [400, 404, 406, 413, 415, 429],
  }),
  get: contract({
    method: "get",
    path: "/mcp",
    summary: "MCP: server-initiated messages, or with Last-Event-ID the rest of the answer to a call",
    access: "operator",
    user: "session",
    contentType: "text/event-stream",
    refusals: [400, 404, 406, 429],
  }),
  delete: contract({
    method: "delete",
    path: "/mcp",
    summary: "MCP: ends a session. Executions that it has begun go on",
    access: "operator",
    user: "session",
  }),
} as const;
