import { once } from "node:events";
import { request } from "node:http";
import type { Socket } from "node:net";

/*
 * A worker connection by the bytes that docs/worker-protocol.md names, written without the program's own parts: what another
 * language's worker would send.
 */

/** Kinds as the page numbers them. */
export const KIND = {
  claim: 1,
  report: 2,
  heartbeat: 3,
  cancel: 16,
  ping: 17,
  answer: 128,
  pong: 129,
  leave: 130,
} as const;
const CLOSE = 131;

/** A message from the server. */
export interface Received {
  kind: number;
  id: number;
  status: number;
  fields: Record<string, string>;
  body: string;
}

/** A connection that was upgraded. */
export interface MessageClient {
  socket: Socket;
  /** Sends a call and waits for its answer. `id`: default the next one. */
  call(kind: number, body: string | Uint8Array, fields?: Record<string, string>, id?: number): Promise<Received>;
  /** The next message that is no answer to a `call`. */
  next(): Promise<Received>;
  /** Resolves when the connection is closed, with the reason that the server gave; undefined without one. */
  closed: Promise<string | undefined>;
}

/** What answered a request for a worker connection: the connection, or a refusal. */
export type Opened = { status: 101; client: MessageClient } | { status: number; body: string; client?: undefined };

/** A message as bytes; `length` in place of the true one. */
export function bytesOf(
  kind: number,
  id: number,
  body: string | Uint8Array = "",
  fields?: Record<string, string>,
  length?: number,
): Buffer {
  const given = Buffer.from(fields === undefined ? "" : JSON.stringify(fields));
  const text = typeof body === "string" ? Buffer.from(body) : body;
  const head = Buffer.alloc(13);
  head.writeUInt32BE(length ?? 9 + given.length + text.length, 0);
  head.writeUInt8(kind, 4);
  head.writeUInt32BE(id, 5);
  head.writeUInt16BE(given.length, 11);
  return Buffer.concat([head, given, text]);
}

/** Where to ask, and with which headers. */
export interface OpenAt {
  port?: number;
  socketPath?: string;
  path?: string;
  headers?: Record<string, string>;
}

/** Asks for a worker connection. */
export function openMessages({ port, socketPath, path = "/api/worker/connection", headers }: OpenAt): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const at = socketPath === undefined ? { host: "127.0.0.1", port } : { socketPath };
    const asked = { connection: "Upgrade", upgrade: "flow-worker/1", ...headers };
    const sent = request({ ...at, path, headers: asked, agent: false });
    sent.on("upgrade", (_, socket: Socket, head: Buffer) => resolve({ status: 101, client: clientOf(socket, head) }));
    sent.on("response", (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body }));
    });
    sent.on("error", reject).end();
  });
}

/** The same where it must succeed. */
export async function openedMessages(at: OpenAt): Promise<MessageClient> {
  const opened = await openMessages(at);
  if (opened.client === undefined) throw new Error(`no worker connection: ${opened.status} ${opened.body}`);
  return opened.client;
}

function clientOf(socket: Socket, head: Buffer): MessageClient {
  const answers = new Map<number, (received: Received) => void>();
  const others: Received[] = [];
  const wanted: ((received: Received) => void)[] = [];
  let [held, lastId] = [head, 0];
  let reason: string | undefined;
  const read = () => {
    while (held.length >= 13 && held.length >= held.readUInt32BE(0) + 4) {
      const end = held.readUInt32BE(0) + 4;
      const bodyAt = 13 + held.readUInt16BE(11);
      const fields = held.subarray(13, bodyAt).toString();
      const received: Received = {
        ...{ kind: held.readUInt8(4), id: held.readUInt32BE(5), status: held.readUInt16BE(9) },
        fields: fields === "" ? {} : (JSON.parse(fields) as Record<string, string>),
        body: held.subarray(bodyAt, end).toString(),
      };
      held = held.subarray(end);
      const answered = received.kind === KIND.answer ? answers.get(received.id) : undefined;
      if (received.kind === CLOSE) reason = (JSON.parse(received.body) as { code: string }).code;
      else if (answered === undefined) (wanted.shift() ?? ((one) => others.push(one)))(received);
      else {
        answers.delete(received.id);
        answered(received);
      }
    }
  };
  socket.on("data", (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    read();
  });
  socket.on("error", () => undefined);
  const closed = once(socket, "close").then(() => reason);
  read();
  return {
    socket,
    closed,
    call(kind, body, fields, id) {
      lastId += 1;
      const own = id ?? lastId;
      const answered = new Promise<Received>((resolve) => answers.set(own, resolve));
      socket.write(bytesOf(kind, own, body, fields));
      return answered;
    },
    next: () => {
      const first = others.shift();
      return first === undefined ? new Promise((resolve) => wanted.push(resolve)) : Promise.resolve(first);
    },
  };
}
