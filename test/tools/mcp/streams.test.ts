import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import { createMcpTool, type McpOptions } from "../../../src/tools/mcp/mcp.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

// What a server does to the stream that is to bring its answer.

const SESSION = { "content-type": "application/json", "mcp-session-id": "s1" };
const EVENTS = { "content-type": "text/event-stream" };

/** Greets as a server does, and leaves the call, and streams that the client opens by itself, to the test. */
async function called(
  t: TestContext,
  handle: {
    call(id: number, response: ServerResponse): void;
    get?(lastEventId: unknown, response: ServerResponse): void;
  },
  options: Partial<McpOptions> = {},
): Promise<ToolResult> {
  const server = await startHttpServer(({ method, headers, body }, response) => {
    const lastEventId = headers["last-event-id"];
    if (method === "GET" && lastEventId !== undefined && handle.get !== undefined)
      return handle.get(lastEventId, response);
    if (method !== "POST") return void response.writeHead(405).end();
    const message = JSON.parse(body) as { id?: number; method: string };
    if (message.id === undefined) return void response.writeHead(202).end();
    if (message.method === "tools/call") return handle.call(message.id, response);
    const serverInfo = { name: "raw", version: "1" };
    const result = { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo };
    response.writeHead(200, SESSION).end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
  });
  t.after(() => server.close());
  const tool = createMcpTool({ egress: createEgressGuard({ allowPrivate: "all" }), ...options });
  t.after(() => tool.close?.());
  return await tool.run(toolCall({ endpoint: server.origin, tool: "any" }));
}

function answerTo(id: number): string {
  const result = { content: [{ type: "text", text: "late" }] };
  return `data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`;
}

test("a stream that ends without the answer is a connection error, not a wait for the time-out", async (t) => {
  const { error } = await called(t, { call: (_, response) => response.writeHead(200, EVENTS).end(": hello\n\n") });
  assert.deepEqual([error?.kind, error?.code, error?.retryable], ["connection", "MCP_STREAM_ENDED", true]);
});

test("a stream that is cut off is one too", async (t) => {
  const { error } = await called(t, {
    call(_, response) {
      response.writeHead(200, EVENTS);
      response.write(": hello\n\n", () => response.destroy());
    },
  });
  assert.deepEqual([error?.kind, error?.code], ["connection", "MCP_STREAM_ENDED"]);
});

test("a stream whose events have ids is taken up where it ended", async (t) => {
  let missed: number | undefined;
  const result = await called(t, {
    call(id, response) {
      missed = id;
      response.writeHead(200, EVENTS).end("id: e7\nretry: 1\ndata:\n\n");
    },
    get(lastEventId, response) {
      assert.equal(lastEventId, "e7");
      response.writeHead(200, EVENTS).write(answerTo(missed ?? 0));
    },
  });
  assert.equal((result.data as JsonObject | null)?.["text"], "late", result.error?.message);
});

test("a stream that cannot be taken up again is a connection error in the end", async (t) => {
  const { error } = await called(t, {
    call: (_, response) => response.writeHead(200, EVENTS).end("id: e7\nretry: 1\ndata:\n\n"),
    get: (_, response) => response.writeHead(500).end(),
  });
  assert.deepEqual([error?.kind, error?.code], ["connection", "MCP_STREAM_ENDED"]);
});

test("an answer that comes slowly, in pieces, is read whole", async (t) => {
  const result = await called(t, {
    call(id, response) {
      response.writeHead(200, EVENTS);
      const text = answerTo(id);
      // Each piece goes out by itself: the next one is written when this one has left.
      const send = (at: number): void => {
        if (at >= text.length) return void response.end();
        response.write(text.slice(at, at + 7), () => setImmediate(() => send(at + 7)));
      };
      send(0);
    },
  });
  assert.equal((result.data as JsonObject | null)?.["text"], "late", result.error?.message);
});

for (const [form, headers, begin] of [
  ["a stream", EVENTS, "data: "],
  ["JSON", SESSION, ""],
] as const) {
  test(`an answer as ${form} above the limit ends the call`, async (t) => {
    const options = { responseBytesMax: 10_000 };
    const call = (_: number, response: ServerResponse) =>
      void response.writeHead(200, headers).end(begin + "x".repeat(20_000));
    const { error } = await called(t, { call }, options);
    assert.equal(error?.kind, "connection");
    assert.match(error?.message ?? "", /larger than 10000 bytes/);
  });
}

/** A server of the SSE transport: it greets over its one stream, and leaves the call's message to the test. */
async function calledBySse(
  t: TestContext,
  handle: (message: ServerResponse, stream: ServerResponse) => void,
): Promise<ToolResult> {
  let stream: ServerResponse | undefined;
  const server = await startHttpServer(({ method, body }, response) => {
    if (method === "GET") {
      stream = response.writeHead(200, EVENTS);
      return void stream.write("event: endpoint\ndata: /messages\n\n");
    }
    const message = JSON.parse(body) as { id?: number; method: string };
    if (message.method === "tools/call" && stream !== undefined) return handle(response, stream);
    response.writeHead(202).end();
    const result = {
      protocolVersion: "2024-11-05",
      capabilities: { tools: {} },
      serverInfo: { name: "raw", version: "1" },
    };
    const answer = JSON.stringify({ jsonrpc: "2.0", id: message.id, result });
    if (message.id !== undefined) stream?.write(`event: message\ndata: ${answer}\n\n`);
  });
  t.after(() => server.close());
  const tool = createMcpTool({ egress: createEgressGuard({ allowPrivate: "all" }) });
  t.after(() => tool.close?.());
  return await tool.run(toolCall({ endpoint: server.origin, tool: "any", transport: "sse" }));
}

test("over SSE a refused message has the status that it was refused with", async (t) => {
  const { error } = await calledBySse(t, (message) => void message.writeHead(403).end("no"));
  assert.deepEqual([error?.kind, error?.code], ["auth", "HTTP_403"]);
  assert.match(error?.message ?? "", /tool-call permission/);
});

test("over SSE the end of the stream is the end of the call", async (t) => {
  const { error } = await calledBySse(t, (message, stream) => {
    message.writeHead(202).end();
    stream.end();
  });
  assert.deepEqual([error?.kind, error?.code], ["connection", "MCP_STREAM_ENDED"]);
});
