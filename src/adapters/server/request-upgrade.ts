import { request as byHttp, type IncomingMessage, type RequestOptions } from "node:http";
import { request as byHttps } from "node:https";
import type { Socket } from "node:net";
import { CONNECTION_ROUTES } from "../../schema/routes/messages.ts";
import { messageOf } from "../../schema/words/errors.ts";
import type { ServerAddress } from "./connection.ts";

/** A connection that was upgraded, or why it was refused. `isUnknown`: what answers there knows no such connections, now or in a minute. */
export type UpgradeOutcome = { socket: Socket; head: Buffer } | { refused: string; isUnknown: boolean };

/** Longest time to connect and be answered. */
const ANSWER_MS = 10_000;
/** Statuses that say "later" or "not you"; all others are those of a server, or of a proxy, that does not know the protocol. */
const CHANGING = new Set([401, 403, 408, 429, 500, 502, 503, 504]);

/** Asks a server to upgrade a connection: through its unix socket, else at its address. Certificates are checked as for every call. */
export async function requestUpgrade(
  address: ServerAddress,
  protocol: string,
  signal: AbortSignal,
): Promise<UpgradeOutcome> {
  const { url, token, socket: socketPath } = address;
  const { hostname, port, protocol: scheme, pathname } = new URL(url);
  const options: RequestOptions = {
    host: hostname.replace(/^\[|\]$/g, ""),
    ...(port !== "" && { port }),
    path: `${pathname.replace(/\/$/, "")}${CONNECTION_ROUTES.open.path}`,
    headers: {
      connection: "Upgrade",
      upgrade: protocol,
      ...(token !== undefined && { authorization: `Bearer ${token.reveal()}` }),
    },
    agent: false,
    signal,
  };
  if (scheme === "https:") return await ask(byHttps, options, protocol);
  if (socketPath !== undefined) {
    const { host: _, port: __, ...rest } = options;
    // What the socket's server is asked for by name, it is asked for by its address.
    const throughSocket = { ...rest, socketPath, headers: { ...options.headers, host: new URL(url).host } };
    const outcome = await ask(byHttp, throughSocket, protocol);
    if (!("refused" in outcome) || outcome.isUnknown) return outcome;
  }
  return await ask(byHttp, options, protocol);
}

function ask(request: typeof byHttp, options: RequestOptions, protocol: string): Promise<UpgradeOutcome> {
  return new Promise((resolve) => {
    const sent = request(options);
    const limit = setTimeout(() => sent.destroy(new Error("there was no answer in time")), ANSWER_MS);
    const refuse = (refused: string, isUnknown: boolean) => {
      clearTimeout(limit);
      resolve({ refused, isUnknown });
    };
    sent.on("upgrade", (answer: IncomingMessage, socket: Socket, head: Buffer) => {
      clearTimeout(limit);
      if (answer.headers.upgrade?.toLowerCase() === protocol) resolve({ socket, head });
      else {
        socket.destroy();
        refuse("it upgraded to another protocol", true);
      }
    });
    sent.on("response", (answer) => {
      answer.resume();
      const status = answer.statusCode ?? 0;
      refuse(`it was answered with status ${status}`, !CHANGING.has(status));
      sent.destroy();
    });
    sent.on("error", (error) => refuse(messageOf(error), false));
    sent.end();
  });
}
