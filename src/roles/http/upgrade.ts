import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { Answers, Incoming, Upgrades } from "./answers.ts";

/** What {@link answerUpgrade} needs besides. */
export interface UpgradeParts {
  answers: Answers;
  upgrades: Upgrades;
  isLeaving(): boolean;
  /** What its connections come from, where they do not say it. */
  from: Incoming | undefined;
  /** The address without what a reverse proxy leaves before it. */
  pathOf(url: string): string;
}

/**
 * Answers every request with a header `Upgrade`, all of which Node hands to this listener. The one that the protocol is asked for by goes to the
 * API as a request, which decides as on every route; nothing that follows is read before. All others are answered as if the header were
 * not there, as RFC 9110 (section 7.8) wants: clients ask for protocols on the chance of it, curl for HTTP/2.
 */
export function answerUpgrade(server: Server, parts: UpgradeParts): void {
  server.on("upgrade", (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
    if (isAskedFor(incoming, parts)) void upgrade(incoming, socket, head, parts);
    else answerWithout(server, incoming, socket, head);
  });
}

function isAskedFor({ method, url = "/", headers }: IncomingMessage, { upgrades, pathOf }: UpgradeParts): boolean {
  const asked = (headers.upgrade ?? "").split(",").map((name) => name.trim().toLowerCase());
  const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
  return method === "GET" && !hasBody && asked.includes(upgrades.protocol) && pathOf(url) === upgrades.path;
}

async function upgrade(incoming: IncomingMessage, socket: Socket, head: Buffer, parts: UpgradeParts): Promise<void> {
  const { answers, upgrades, isLeaving, from } = parts;
  const gone = new AbortController();
  const onError = () => undefined;
  const onClose = () => gone.abort();
  socket.on("error", onError).on("close", onClose);
  const headers = single(incoming);
  const asked = { isLeaving: isLeaving(), isAccepted: false };
  const caller = { incoming: from ?? incoming, headers };
  const response = await answered(answers, upgrades.path, headers, gone.signal, {
    incoming: caller.incoming,
    upgrade: asked,
  });
  socket.off("close", onClose);
  if (socket.destroyed) return;
  if (!asked.isAccepted) {
    await refuse(socket, response);
    return;
  }
  socket.off("error", onError);
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgrades.protocol}\r\n\r\n`,
    "latin1",
  );
  upgrades.take(socket, head, caller);
}

async function answered(
  answers: Answers,
  path: string,
  headers: Record<string, string>,
  signal: AbortSignal,
  env: Parameters<Answers["fetch"]>[1],
): Promise<Response> {
  try {
    return await answers.fetch(new Request(`http://localhost${path}`, { headers, signal }), env);
  } catch {
    return answers.malformed();
  }
}

/** Headers with one value each, as they are but for what is of this connection alone. */
function single({ headers }: IncomingMessage): Record<string, string> {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string" && name !== "connection" && name !== "upgrade") given[name] = value;
  }
  return given;
}

/** The connection ends with it: what came after the request may have been meant for the other protocol. */
async function refuse(socket: Socket, response: Response): Promise<void> {
  const body = Buffer.from(await response.arrayBuffer());
  const lines = [`HTTP/1.1 ${response.status} ${REASON}`, "connection: close", `content-length: ${body.length}`];
  response.headers.forEach((value, name) => {
    if (name !== "content-length") lines.push(`${name}: ${value}`);
  });
  socket.end(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body]));
  // It is read to its end and thrown away, so that the answer is not lost over unread bytes.
  text(socket).catch(() => undefined);
}

/** Programs look at the number. */
const REASON = "Refused";

/** Hands the connection back, with the request as it was but for `Upgrade`: as if it had just come. */
function answerWithout(server: Server, incoming: IncomingMessage, socket: Socket, head: Buffer): void {
  const lines = [`${incoming.method} ${incoming.url} HTTP/${incoming.httpVersion}`];
  for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
    const [name = "", value = ""] = incoming.rawHeaders.slice(at, at + 2);
    if (name.toLowerCase() !== "upgrade") lines.push(`${name}: ${value}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}
