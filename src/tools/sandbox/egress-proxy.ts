import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Agent } from "undici";
import type { EgressGuard } from "../../platform/http/egress.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { createGuardedAgents, openTunnel } from "../http/dispatcher.ts";

/** The one way out of sandboxes: an HTTP proxy on a unix socket, which connects only where the guard lets it. */
export interface EgressProxy {
  /** Path of the socket. */
  socketPath: string;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Connections at a time, of all sandboxes. */
const CONNECTIONS_MAX = 1_024;
const CONNECT_TIMEOUT_MS = 10_000;
/** A tunnel that carries nothing for so long is closed, milliseconds. */
const IDLE_TIMEOUT_MS = 600_000;

/**
 * Listens on `socketPath`. CONNECT gives a tunnel to any port; a request with a whole `http://` address is passed on. What the
 * guard refuses is 403 with the guard's sentence. Redirects are the client's to follow: each is a request of its own.
 */
export async function openEgressProxy(socketPath: string, guard: EgressGuard): Promise<EgressProxy> {
  const agents = createGuardedAgents(guard, { connectTimeoutMs: CONNECT_TIMEOUT_MS });
  const agent = agents.of({ verifySsl: true });
  const server = createServer((request, response) => void passOn(request, response, agent));
  server.maxConnections = CONNECTIONS_MAX;
  const tunnels = new Set<Duplex>();
  server.on("connect", (request, client, head) => {
    tunnels.add(client);
    client.once("close", () => tunnels.delete(client));
    void tunnel(request.url ?? "", client, head, guard);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socketPath, resolve);
  });
  server.unref();
  return {
    socketPath,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      for (const client of tunnels) client.destroy();
      await Promise.all([closed, agents.close()]);
    },
  };
}

async function tunnel(authority: string, client: Duplex, head: Buffer, guard: EgressGuard): Promise<void> {
  client.on("error", () => client.destroy());
  try {
    const target = await reach(authority, guard);
    target.on("error", () => client.destroy());
    target.once("close", () => client.destroy());
    client.once("close", () => target.destroy());
    target.setTimeout(IDLE_TIMEOUT_MS, () => target.destroy());
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    if (head.length > 0) target.write(head);
    target.pipe(client).pipe(target);
  } catch (error) {
    const [status, text] = refusal(error);
    client.end(
      `HTTP/1.1 ${status} ${STATUS_TEXTS[status]}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n${text}\n`,
    );
  }
}

async function reach(authority: string, guard: EgressGuard): Promise<Socket> {
  const url = URL.canParse(`https://${authority}`) ? new URL(`https://${authority}`) : undefined;
  const port = Number(/:(\d{1,5})$/.exec(authority)?.[1]);
  if (url === undefined || !(port > 0 && port < 65_536) || url.username !== "" || url.pathname !== "/") {
    throw new FlowError("INVALID_INPUT", `CONNECT needs host:port, got "${authority.slice(0, 200)}"`);
  }
  const outer = guard.proxyOf(url);
  if (outer !== undefined) {
    await guard.check(url.hostname);
    return await openTunnel(outer, `${url.hostname}:${port}`, CONNECT_TIMEOUT_MS);
  }
  guard.assertHost(url.hostname);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return await new Promise((resolve, reject) => {
    const socket = connect({ host, port, ...(isIP(host) === 0 && { lookup: guard.lookup }) });
    const late = () =>
      socket.destroy(new Error(`no connection to ${host}:${port} after ${CONNECT_TIMEOUT_MS / 1_000} s`));
    const timer = setTimeout(late, CONNECT_TIMEOUT_MS);
    socket.once("error", reject);
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", reject);
      resolve(socket);
    });
    socket.once("close", () => clearTimeout(timer));
  });
}

async function passOn(request: IncomingMessage, response: ServerResponse, agent: Agent): Promise<void> {
  try {
    const url = URL.canParse(request.url ?? "") ? new URL(request.url ?? "") : undefined;
    if (url?.protocol !== "http:") {
      throw new FlowError("INVALID_INPUT", "This is a proxy: a request names a whole http:// address, or is a CONNECT");
    }
    const answer = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: request.method as "GET",
      headers: endToEnd(request.headers),
      body: hasBody(request) ? request : null,
    });
    response.writeHead(answer.statusCode, endToEnd(answer.headers));
    answer.body.on("error", () => response.destroy());
    answer.body.pipe(response);
    response.once("close", () => answer.body.destroy());
  } catch (error) {
    const [status, text] = refusal(error);
    if (response.headersSent) response.destroy();
    else response.writeHead(status, { "content-type": "text/plain" }).end(`${text}\n`);
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
}

/** Headers of one hop (RFC 9110, section 7.6.1), which a proxy does not pass on. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

type Headers = Record<string, string | string[] | undefined>;

function endToEnd(headers: Headers): Headers {
  const named = new Set(
    String(headers["connection"] ?? "")
      .toLowerCase()
      .split(/\s*,\s*/),
  );
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name) && !named.has(name)));
}

const STATUS_TEXTS: Readonly<Record<number, string>> = { 400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway" };

/** Status and sentence of a failure. The guard's error may be the cause of another. */
function refusal(error: unknown): [status: number, text: string] {
  const cause = error instanceof Error && error.cause instanceof FlowError ? error.cause : error;
  if (cause instanceof FlowError && cause.code === "EGRESS_REFUSED") return [403, cause.message];
  if (cause instanceof FlowError && cause.code === "INVALID_INPUT") return [400, cause.message];
  return [502, `The address could not be reached: ${messageOf(cause)}`];
}
