import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { type RecordedRequest, startHttpServer } from "./http-server.ts";

/** A message that arrived, as far as tests look at it. */
export interface McpMessage {
  /** Of JSON-RPC; the HTTP method of requests without a body. */
  method: string;
  headers: IncomingHttpHeaders;
}

/** A server made of the official SDK, in this process. */
export interface SdkMcpServer {
  endpoint: string;
  messages: McpMessage[];
  /** The JSON-RPC methods in order of arrival, notifications and the farewell left out. */
  methods(): string[];
  /** Every session that it has is unknown to it from here on. */
  forgetSessions(): void;
  close(): Promise<void>;
}

/** What the server is like. */
export interface SdkServerOptions {
  /** Answers with JSON instead of a stream of events. */
  json?: boolean;
  /** Names of tools, page by page. Default one page: echo, fail, steps. */
  pages?: readonly (readonly string[])[];
  /** The status that a message is refused with; undefined: it is taken. */
  refuse?(message: McpMessage): number | undefined;
}

/** Starts it on a free port of the loopback interface. Its tools: `echo`, `fail` (isError), `steps` (tells its progress). */
export async function startSdkMcpServer(options: SdkServerOptions = {}): Promise<SdkMcpServer> {
  const messages: McpMessage[] = [];
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const open = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      enableJsonResponse: options.json === true,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await toolServer(options).connect(transport as Transport);
    return transport;
  };
  const answer = async ({ headers, body, method }: RecordedRequest, response: ServerResponse) => {
    const parsed = body === "" ? undefined : (JSON.parse(body) as { method: string });
    const message = { method: parsed?.method ?? method, headers };
    messages.push(message);
    const status = options.refuse?.(message);
    if (status !== undefined) return void response.writeHead(status).end("no");
    const id = headers["mcp-session-id"];
    const known = typeof id === "string" ? sessions.get(id) : await open();
    if (known === undefined) return void response.writeHead(404).end("Session not found");
    const request = response.req;
    await known.handleRequest(request, response, parsed);
  };
  const http = await startHttpServer((request, response) => void answer(request, response));
  return {
    endpoint: `${http.origin}/mcp`,
    messages,
    methods: () => messages.map(({ method }) => method).filter((method) => !/^(notifications|GET|DELETE)/.test(method)),
    forgetSessions: () => sessions.clear(),
    async close() {
      await Promise.all([...sessions.values()].map((transport) => transport.close()));
      await http.close();
    },
  };
}

function toolServer({ pages = [["echo", "fail", "steps"]] }: SdkServerOptions): Server {
  const server = new Server({ name: "sdk", version: "1.2.3" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const page = Number(params?.cursor ?? 0);
    const tools = (pages[page] ?? []).map((name) => ({ name, inputSchema: { type: "object" as const } }));
    return { tools, ...(page + 1 < pages.length && { nextCursor: String(page + 1) }) };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { sendNotification, _meta }) => {
    const text = (value: string) => [{ type: "text" as const, text: value }];
    if (params.name === "fail") return { content: text("it went wrong"), isError: true };
    if (params.name === "steps") {
      const progressToken = _meta?.progressToken;
      for (const progress of progressToken === undefined ? [] : [1, 2]) {
        const method = "notifications/progress" as const;
        await sendNotification({ method, params: { progressToken, progress, total: 2 } as never });
      }
    }
    const said = params.arguments ?? {};
    return { content: text(JSON.stringify(said)), structuredContent: said };
  });
  return server;
}
