import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { type Dispatcher, fetch } from "undici";

/** An open session with a server. */
export interface McpSession {
  client: Client;
  /** Ends the session on the server (where it has one) and closes the connection. Never throws. */
  close(): Promise<void>;
}

/** What {@link openMcpSession} takes. */
export interface McpTarget {
  endpoint: URL;
  /** By lower-case name. */
  headers: Record<string, string>;
  dispatcher: Dispatcher;
  /** Largest answer in bytes. */
  responseBytesMax: number;
  signal: AbortSignal;
}

/**
 * Connects by streamable HTTP; a server that refuses that with a status of 4xx (other than 401 and 403) is tried with
 * the older SSE transport, and the first error is reported when that fails too. Throws what the SDK throws.
 */
export async function openMcpSession(target: McpTarget): Promise<McpSession> {
  const options = { requestInit: { headers: target.headers }, fetch: guardedFetch(target) };
  try {
    const transport = new StreamableHTTPClientTransport(target.endpoint, {
      ...options,
      // Retrying is the policy's decision.
      reconnectionOptions: {
        maxRetries: 0,
        initialReconnectionDelay: 1000,
        maxReconnectionDelay: 1000,
        reconnectionDelayGrowFactor: 1,
      },
    });
    const client = await connect(transport, target.signal);
    return { client, close: () => closeStreamable(client, transport) };
  } catch (error) {
    if (!(error instanceof StreamableHTTPError) || !speaksSse(error.code)) throw error;
    try {
      const client = await connect(new SSEClientTransport(target.endpoint, options), target.signal);
      return { client, close: () => client.close().catch(() => {}) };
    } catch {
      throw error;
    }
  }
}

/** How long the farewell may take: the answer is there already, and the server forgets a silent session by itself. */
const FAREWELL_MS = 1000;

async function closeStreamable(client: Client, transport: StreamableHTTPClientTransport): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FAREWELL_MS);
  });
  await Promise.race([transport.terminateSession().catch(() => {}), deadline]);
  clearTimeout(timer);
  await client.close().catch(() => {});
}

async function connect(
  transport: StreamableHTTPClientTransport | SSEClientTransport,
  signal: AbortSignal,
): Promise<Client> {
  const client = new Client({ name: "flow", version: "1" }, { capabilities: {} });
  try {
    // The SDK's own transports do not fit its interface under exactOptionalPropertyTypes.
    await client.connect(transport as Parameters<Client["connect"]>[0], { signal, timeout: TIMEOUT_OFF_MS });
    return client;
  } catch (error) {
    await client.close().catch(() => {});
    throw error;
  }
}

/** The SDK gives up after 60 s by default; here the task's signal decides. The longest that a timer can wait. */
export const TIMEOUT_OFF_MS = 2 ** 31 - 1;

function speaksSse(status: number | undefined): boolean {
  return status !== undefined && status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 429;
}

/** `fetch` through the guarded dispatcher, with a bound on every answer's body. */
function guardedFetch({ dispatcher, responseBytesMax, signal }: McpTarget): FetchLike {
  return async (url, init) => {
    const signals = init?.signal ? AbortSignal.any([init.signal, signal]) : signal;
    const request = { ...init, signal: signals, dispatcher } as Parameters<typeof fetch>[1];
    const response = await fetch(url, request);
    if (response.body === null) return response as unknown as Response;
    let size = 0;
    const bounded = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          size += chunk.byteLength;
          if (size > responseBytesMax)
            controller.error(new Error(`the answer is larger than ${responseBytesMax} bytes`));
          else controller.enqueue(chunk);
        },
      }),
    );
    const { status, statusText } = response;
    const headers = [...response.headers] as [string, string][];
    return new Response(bounded as unknown as ReadableStream<Uint8Array>, { status, statusText, headers });
  };
}
