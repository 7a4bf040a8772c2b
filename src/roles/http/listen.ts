import { chmod } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { withoutPublicPath } from "../../platform/config/public-address.ts";
import { fitsSocket, freeSocket } from "../../platform/unix-socket.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Answers, Incoming } from "./answers.ts";
import { answerUpgrade } from "./upgrade.ts";

/** An HTTP server that listens. */
export interface Listener {
  /** `http://127.0.0.1:8082`: as callers on this machine reach it. */
  url: string;
  /** The unix socket that it listens on too; undefined if none was asked for, or `socketTrouble` says why it has none. */
  socket: string | undefined;
  socketTrouble: string | undefined;
  /** From now on every answer is the last one of its connection: callers go elsewhere with their next call. */
  leave(): void;
  /** Takes no new request, lets those under way end, and closes what idles. */
  close(): Promise<void>;
}

/** Where to listen. */
export interface ListenAt {
  host: string;
  /** 0: a free one. */
  port: number;
  /** How another port is chosen, for people. Default `--port`. */
  portBy?: string;
  /** How slow a client may be. Default {@link SLOWEST}. */
  slowest?: Slowest;
  /** What a reverse proxy may leave standing before each path (`/flow`): it is cut off. Default nothing. */
  publicPath?: string;
  /** A unix socket beside it, which this process's user alone can open: its path, by the port. Without one it goes on. */
  socket?(port: number): string;
}

/** How slow a client may be, milliseconds: a slower one gets 408, and the connection is closed. */
export interface Slowest {
  /** For the headers. */
  headersMs: number;
  /** For the whole request. */
  requestMs: number;
  /** How often connections are looked at: one may last this much longer. */
  lookMs: number;
}

/** A client that takes longer holds a connection for nothing. Node looks each 30 s by itself. */
const SLOWEST: Slowest = { headersMs: 10_000, requestMs: 30_000, lookMs: 2_000 };
/**
 * How long a connection may be idle. Proxies usually keep theirs for 60 s, and must close first: else they may send a call down
 * a connection that ends at that moment.
 */
const KEEP_ALIVE_MS = 75_000;
/** Requests under way get this long to end; then their connections are cut. Below the limit of the lifecycle's parts. */
const DRAIN_MS = 8_000;
/** How often idle connections are closed meanwhile. */
const IDLE_POLL_MS = 50;

/**
 * Listens and answers with `fetch`; with `malformed` where there is no request to hand on: an invalid Host, an impossible
 * address. Throws `FlowError` INVALID_SETTING when the address cannot be had.
 */
export async function listen(answers: Answers, at: ListenAt): Promise<Listener> {
  let isLeaving = false;
  const open = (from?: Incoming) => createHttpServer(answers, at, () => isLeaving, from);
  const server = open();
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(error, at)));
    server.listen(at.port, at.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  const host = at.host.includes(":") ? `[${at.host}]` : at.host;
  const socket = at.socket?.(port);
  const local = socket === undefined ? undefined : open(LOOPBACK);
  const socketTrouble = local === undefined || socket === undefined ? undefined : await listenOn(local, socket);
  const servers = local === undefined || socketTrouble !== undefined ? [server] : [server, local];
  return {
    url: `http://${host}:${port}`,
    socket: socketTrouble === undefined ? socket : undefined,
    socketTrouble,
    leave: () => {
      isLeaving = true;
      answers.upgrades?.leave();
    },
    close: async () => {
      isLeaving = true;
      await Promise.all([answers.upgrades?.close(), ...servers.map(closed)]);
    },
  };
}

const LOOPBACK: Incoming = { socket: { remoteAddress: "127.0.0.1" } };

/** `from`: what its connections come from, where they do not say it. */
function createHttpServer(
  answers: Answers,
  at: ListenAt,
  isLeaving: () => boolean,
  from: Incoming | undefined,
): Server {
  const { fetch, malformed, upgrades } = answers;
  const answer = getRequestListener(
    (request, env) => fetch(request, { incoming: from ?? (env.incoming as Incoming) }),
    { errorHandler: malformed },
  );
  const { headersMs, requestMs, lookMs } = at.slowest ?? SLOWEST;
  const limits = {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: lookMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const { publicPath } = at;
  const pathOf = (url: string) => (publicPath === undefined ? url : withoutPublicPath(url, publicPath));
  const listener: RequestListener = (incoming, outgoing) => {
    // The connection's last answer: a busy client would keep it, and this server, for as long as it has something to ask.
    if (isLeaving()) outgoing.shouldKeepAlive = false;
    incoming.url = pathOf(incoming.url ?? "/");
    void answer(incoming, outgoing);
  };
  const server = createServer(limits, listener);
  if (upgrades !== undefined) answerUpgrade(server, { answers, upgrades, isLeaving, from, pathOf });
  return server;
}

/** Says why it cannot be. */
async function listenOn(server: Server, path: string): Promise<string | undefined> {
  const why = fitsSocket(path) ? await freeSocket(path) : "the path is too long for a unix socket";
  if (why !== undefined) return why;
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
    await chmod(path, OWNER_ONLY);
    return undefined;
  } catch (error) {
    server.close();
    return messageOf(error);
  }
}

const OWNER_ONLY = 0o600;

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_POLL_MS);
    server.close(() => {
      clearTimeout(cut);
      clearInterval(idle);
      resolve();
    });
  });
}

/** Makes sure that the address can be had, now. Throws as {@link listen}; port 0 is always free. */
export async function assertFree(at: ListenAt): Promise<void> {
  if (at.port === 0) return;
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", (error: NodeJS.ErrnoException) => reject(cannotListen(error, at)));
    probe.listen(at.port, at.host, () => probe.close(() => resolve()));
  });
}

function cannotListen(error: NodeJS.ErrnoException, { host, port, portBy = "--port" }: ListenAt): FlowError {
  const hint =
    error.code === "EADDRINUSE"
      ? `Another process already listens there, perhaps another flow: stop it, or choose another port with ${portBy}`
      : `Choose another address with --host and ${portBy}`;
  const message = `Cannot listen on ${host}:${port}: ${messageOf(error)}. ${hint}`;
  return new FlowError("INVALID_SETTING", message, { cause: error });
}
