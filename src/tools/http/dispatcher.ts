import type { Socket } from "node:net";
import { Agent, buildConnector, Client, type Dispatcher, Pool } from "undici";
import type { EgressGuard } from "../../platform/http/egress.ts";
import type { OutgoingProxy } from "../../platform/http/proxy.ts";
import { defined } from "../../schema/words/defined.ts";
import { messageOf } from "../../schema/words/errors.ts";

/** How connections are made. */
export interface ConnectionOptions {
  /** Longest wait for a connection, and for a proxy's answer, milliseconds. */
  connectTimeoutMs: number;
  /** Connections to one origin; default: as many as it takes. */
  connectionsMax?: number;
}

/** Whom a TLS connection trusts. */
export interface Trust {
  /** False takes any certificate. */
  verifySsl: boolean;
  /** Authorities (PEM) that alone sign the server's certificate; undefined: those of Node, and NODE_EXTRA_CA_CERTS. */
  ca?: string | undefined;
}

/** Agents that one guard watches over, one for each kind of trust. */
export interface GuardedAgents {
  /** See {@link createGuardedAgent}. */
  of(trust: Trust): Agent;
  /** Ends at once. */
  close(): Promise<void>;
}

/** Kinds of trust whose connections are kept: one without a credential's authority, and those of so many credentials. */
const AGENTS_MAX = 64;

/** Creates an agent on first use and keeps it; beyond a limit the least recently used one is closed. */
export function createGuardedAgents(guard: EgressGuard, options: ConnectionOptions): GuardedAgents {
  const agents = new Map<string, Agent>();
  return {
    of({ verifySsl, ca }) {
      const key = `${verifySsl} ${ca ?? ""}`;
      const agent = agents.get(key) ?? createGuardedAgent(guard, { ...options, verifySsl, ca });
      agents.delete(key);
      agents.set(key, agent);
      const [oldest] = agents;
      if (agents.size > AGENTS_MAX && oldest !== undefined) {
        agents.delete(oldest[0]);
        void oldest[1].close();
      }
      return agent;
    },
    async close() {
      const all = [...agents.values()];
      agents.clear();
      await Promise.all(all.map((agent) => agent.destroy()));
    },
  };
}

/**
 * An undici agent whose every connection passes the guard, also after redirects: literal addresses before the socket is made,
 * names through the guard's own lookup. If the guard names a proxy, the addresses are checked before the proxy receives them.
 * Header and body time-outs are off, because a task's signal sets the limit; the agent has only its own connect time-out. An
 * idle connection is closed after four seconds.
 */
export function createGuardedAgent(guard: EgressGuard, options: ConnectionOptions & Trust): Agent {
  const { connectTimeoutMs, verifySsl, ca } = options;
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    lookup: guard.lookup,
    rejectUnauthorized: verifySsl,
    ...defined({ ca }),
  });
  const direct: buildConnector.connector = (target, callback) => {
    try {
      guard.assertHost(target.hostname);
    } catch (error) {
      callback(error as Error, null);
      return;
    }
    connect(target, callback);
  };
  return new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    ...defined({ connections: options.connectionsMax }),
    factory(origin, given) {
      const url = new URL(origin);
      const proxy = guard.proxyOf(url);
      if (proxy === undefined) return new Pool(origin, { ...given, connect: direct });
      if (url.protocol === "http:") return forwarding(url, proxy, guard, given, connectTimeoutMs);
      return new Pool(origin, { ...given, connect: tunnel(proxy, guard, connect, connectTimeoutMs) });
    },
  });
}

/** Connects through the proxy's CONNECT; TLS is spoken with the target itself. */
function tunnel(
  proxy: OutgoingProxy,
  guard: EgressGuard,
  connect: buildConnector.connector,
  timeoutMs: number,
): buildConnector.connector {
  return (target, callback) => {
    const open = async (): Promise<Socket> => {
      await guard.check(target.hostname);
      return await openTunnel(proxy, `${target.hostname}:${target.port || "443"}`, timeoutMs);
    };
    open().then(
      (httpSocket) => connect({ ...target, httpSocket } as buildConnector.Options, callback),
      (error: Error) => callback(error, null),
    );
  };
}

/** A socket through the proxy's CONNECT to `host:port`. Rejects with an error of code PROXY_REFUSED or PROXY_UNREACHABLE. */
export async function openTunnel(proxy: OutgoingProxy, target: string, timeoutMs: number): Promise<Socket> {
  const client = new Client(proxy.origin, { connect: { timeout: timeoutMs }, headersTimeout: timeoutMs });
  try {
    const headers = { host: target, ...authorizationOf(proxy) };
    const { statusCode, socket } = await client.connect({ path: target, headers });
    if (statusCode >= 200 && statusCode < 300) return socket as Socket;
    socket.on("error", () => {}).destroy();
    throw proxyError("PROXY_REFUSED", `the proxy ${proxy.origin} answered ${statusCode} to CONNECT ${target}`);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "PROXY_REFUSED") throw error;
    throw unreachable(proxy, error);
  } finally {
    void client.close();
  }
}

/** The proxy passes on requests without TLS, which carry their whole addresses. */
function forwarding(url: URL, proxy: OutgoingProxy, guard: EgressGuard, given: object, timeoutMs: number): Dispatcher {
  const connect = buildConnector({ timeout: timeoutMs });
  const pool = new Pool(proxy.origin, {
    ...given,
    connect(target, callback) {
      guard.check(url.hostname).then(
        () =>
          connect(target, (...[error, socket]) =>
            error === null ? callback(null, socket) : callback(unreachable(proxy, error), null),
          ),
        (error: Error) => callback(error, null),
      );
    },
  });
  return pool.compose((dispatch) => (options, handler) => {
    const headers = { host: url.host, ...plainHeaders(options.headers), ...authorizationOf(proxy) };
    return dispatch({ ...options, origin: proxy.origin, path: `${url.origin}${options.path}`, headers }, handler);
  });
}

function authorizationOf({ authorization }: OutgoingProxy): Record<string, string> {
  return authorization === undefined ? {} : { "proxy-authorization": authorization };
}

/** Headers in each of the forms that a request may have them in. */
function plainHeaders(headers: Dispatcher.DispatchOptions["headers"]): Record<string, string | string[] | undefined> {
  if (headers === null || headers === undefined) return {};
  if (!Array.isArray(headers)) {
    return Symbol.iterator in headers
      ? Object.fromEntries(headers as Iterable<[string, string]>)
      : (headers as Record<string, string>);
  }
  const plain: Record<string, string[]> = {};
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = String(headers[at]).toLowerCase();
    plain[name] = [...(plain[name] ?? []), String(headers[at + 1])];
  }
  return plain;
}

function unreachable(proxy: OutgoingProxy, error: unknown): Error {
  return proxyError("PROXY_UNREACHABLE", `the proxy ${proxy.origin} cannot be reached: ${messageOf(error)}`);
}

function proxyError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
