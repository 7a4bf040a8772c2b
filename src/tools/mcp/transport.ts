import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { Dispatcher } from "undici";
import { guardedFetch, type StreamEnd } from "./fetch.ts";
import type { MessageRecord } from "./message-record.ts";

/** An open session with a server. */
export interface McpSession {
  client: Client;
  /** The server gave it an id, which it may forget. */
  hasId: boolean;
  /** Rejects with {@link McpStreamEnded} when an answer cannot come any more. Never resolves. */
  broken: Promise<never>;
  /** Ends the session on the server (where it has one) and closes the connection. Never throws. */
  close(): Promise<void>;
}

/** What {@link openMcpSession} takes. */
export interface McpTarget {
  endpoint: URL;
  /** Default: streamable HTTP, and SSE with a server that does not know it. */
  transport: "streamable_http" | "sse" | undefined;
  /** By lower-case name. */
  headers: Record<string, string>;
  dispatcher: Dispatcher;
  /** Largest answer in bytes. */
  responseBytesMax: number;
  signal: AbortSignal;
  /** Gets the messages of both sides, where they are wanted. */
  record: MessageRecord | undefined;
}

/** The stream that was to bring an answer ended without it. */
export class McpStreamEnded extends Error {
  override name = "McpStreamEnded";
}

/**
 * Connects by streamable HTTP; a server that refuses that with a status of 4xx (other than 401 and 403) is tried with
 * the older SSE transport, and the first error is reported when that fails too. Throws what the SDK throws, and
 * {@link McpStreamEnded}.
 */
export async function openMcpSession(target: McpTarget): Promise<McpSession> {
  if (target.transport === "sse") return await openSse(target);
  try {
    return await openStreamable(target);
  } catch (error) {
    const mayBeOlder = target.transport === undefined && error instanceof StreamableHTTPError && speaksSse(error.code);
    if (!mayBeOlder) throw error;
    try {
      return await openSse(target);
    } catch {
      throw error;
    }
  }
}

/** A broken stream is taken up where it broke, where the server can do that. Calling again is the policy's decision. */
const RECONNECTION = {
  maxRetries: 3,
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 4_000,
  reconnectionDelayGrowFactor: 2,
};

async function openStreamable(target: McpTarget): Promise<McpSession> {
  const answers = createAnswers((end) =>
    end.requestId === undefined ? "other" : end.isResumable ? "resumed" : "lost",
  );
  const transport = new StreamableHTTPClientTransport(target.endpoint, {
    ...optionsOf(target, answers),
    reconnectionOptions: RECONNECTION,
  });
  const client = await connect(transport, answers, target);
  const hasId = transport.sessionId !== undefined;
  return { client, hasId, broken: answers.broken, close: () => closeStreamable(client, transport, answers) };
}

async function openSse(target: McpTarget): Promise<McpSession> {
  // All answers come by the one stream, which the POST requests do not have.
  const answers = createAnswers(() => "lost");
  const transport = new SSEClientTransport(target.endpoint, optionsOf(target, answers));
  const client = await connect(transport, answers, target);
  const close = async () => {
    answers.close();
    await client.close().catch(() => {});
  };
  return { client, hasId: false, broken: answers.broken, close };
}

function optionsOf({ headers, ...target }: McpTarget, { onStreamEnd }: Answers) {
  return { requestInit: { headers }, fetch: guardedFetch({ ...target, onStreamEnd }) };
}

/** Which requests were answered, so that the end of a stream is known to be one too early. */
interface Answers {
  onStreamEnd(end: StreamEnd): void;
  /** Watches what arrives; before the client is connected. */
  watch(transport: Transport): void;
  broken: Promise<never>;
  close(): void;
}

/** Data that was read reaches the client long before a timer fires: reading it takes no timer and no I/O. */
const SETTLED_MS = 100;

function createAnswers(fateOf: (end: StreamEnd) => "lost" | "resumed" | "other"): Answers {
  const answered = new Set<string | number>();
  const timers = new Set<NodeJS.Timeout>();
  let isResuming = false;
  /** Streams cannot be taken up: the SDK's last word about one, before or after it is known that an answer is missed. */
  let givenUp: Error | undefined;
  let isClosed = false;
  let breakOff: (error: unknown) => void = () => undefined;
  const broken = new Promise<never>((_, reject) => {
    breakOff = (cause) => reject(new McpStreamEnded("the stream ended", { cause }));
  });
  // It has no listener while no request waits.
  broken.catch(() => {});
  return {
    onStreamEnd(end) {
      const fate = fateOf(end);
      if (isClosed || fate === "other") return;
      const timer = setTimeout(() => {
        timers.delete(timer);
        if (end.requestId !== undefined && answered.has(end.requestId)) return;
        isResuming = fate === "resumed";
        if (!isResuming) breakOff(end.error);
        else if (givenUp !== undefined) breakOff(givenUp);
      }, SETTLED_MS);
      timers.add(timer);
    },
    watch(transport) {
      transport.onmessage = (message) => {
        if (!("method" in message) && message.id !== undefined) answered.add(message.id);
      };
      transport.onerror = (error) => {
        if (!error.message.startsWith("Maximum reconnection attempts")) return;
        givenUp = error;
        if (isResuming) breakOff(error);
      };
    },
    broken,
    close() {
      isClosed = true;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/** How long the farewell may take: the answer is there already, and the server forgets a silent session by itself. */
const FAREWELL_MS = 1000;

async function closeStreamable(
  client: Client,
  transport: StreamableHTTPClientTransport,
  answers: Answers,
): Promise<void> {
  answers.close();
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
  answers: Answers,
  { signal, record }: Pick<McpTarget, "signal" | "record">,
): Promise<Client> {
  const client = new Client({ name: "flow", version: "1" }, { capabilities: {} });
  // The SDK's own transports do not fit its interface under exactOptionalPropertyTypes.
  const asTransport = transport as Transport;
  answers.watch(asTransport);
  if (record !== undefined) recordMessages(asTransport, record);
  try {
    await Promise.race([client.connect(asTransport, { signal, timeout: TIMEOUT_OFF_MS }), answers.broken]);
    return client;
  } catch (error) {
    answers.close();
    await client.close().catch(() => {});
    throw error;
  }
}

/** Before the client is connected, which calls the listener that it finds and then its own. */
function recordMessages(transport: Transport, record: MessageRecord): void {
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => {
    record.take("server", message);
    onmessage?.(message, extra);
  };
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    record.take("client", message);
    return send(message, options);
  };
}

/** The SDK gives up after 60 s by default; here the task's signal decides. The longest that a timer can wait. */
export const TIMEOUT_OFF_MS = 2 ** 31 - 1;

function speaksSse(status: number | undefined): boolean {
  return status !== undefined && status >= 400 && status < 500 && status !== 401 && status !== 403 && status !== 429;
}
