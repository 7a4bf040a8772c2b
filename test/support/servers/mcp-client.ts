import { after } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

/** An API without a port. */
export type App = { request: (input: Request | string, init?: RequestInit) => Response | Promise<Response> };

/** What a client is, where that matters. */
export interface McpClientOptions {
  /** Sends every request. */
  fetch?: typeof fetch;
  headers?: Record<string, string>;
  /** Called when the server says that the tools are other ones. */
  onToolsChanged?(): void;
}

/** A client of the official library that is connected to `/mcp`. It leaves when the file's tests are over. */
export async function connectMcpClient(app: App, options: McpClientOptions = {}): Promise<Client> {
  const { fetch = appFetch(app), headers = {}, onToolsChanged } = options;
  const transport = new StreamableHTTPClientTransport(new URL("http://127.0.0.1/mcp"), {
    fetch,
    requestInit: { headers },
    // At once, and again for as long as a slow machine takes.
    reconnectionOptions: {
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 20,
      reconnectionDelayGrowFactor: 2,
      maxRetries: 10_000,
    },
  });
  const tools = onToolsChanged && { autoRefresh: false, debounceMs: 0, onChanged: onToolsChanged };
  const client = new Client({ name: "test", version: "1" }, tools === undefined ? {} : { listChanged: { tools } });
  after(() => client.close());
  await client.connect(transport as Transport);
  return client;
}

/** `fetch` that asks an API without a port. */
export function appFetch(app: App): typeof fetch {
  return async (input, init) => await app.request(new Request(input as URL, init as RequestInit));
}
