import type { Socket } from "node:net";
import { createMessageReader, encodeMessage, type Message } from "../../platform/http/messages.ts";
import { parseReply } from "../../schema/routes/answer.ts";
import { MESSAGE } from "../../schema/routes/messages.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";

/** A worker connection that is open: calls as messages, many under way, answered in any order. */
export interface MessageChannel {
  /** Takes another call: not when too many, or too much of them, are under way. */
  isReady(): boolean;
  /** Rejects when the signal aborts, when there is no answer in time, and when the connection ends. */
  call(call: ChannelCall): Promise<Message>;
  /** Ends it at once, calls under way included. */
  close(): void;
}

/** A call as it travels. */
export interface ChannelCall {
  kind: number;
  /** JSON. */
  fields: string;
  body: string | Uint8Array;
  /** Longest time until the answer. */
  timeoutMs: number;
  signal: AbortSignal;
}

/** What {@link openChannel} needs. */
export interface ChannelParts {
  socket: Socket;
  /** What came after the answer that upgraded the connection. */
  head: Buffer;
  /** The server stops: no call after this one. Those under way are answered; then the connection is closed. */
  left(): void;
  /** The connection is closed, by whom and why. */
  ended(why: string): void;
  /** How often the connection is looked at, in milliseconds. Default 1 s. */
  lookMs?: number;
}

/** Below what a server takes at a time, so that it never stops reading over the number of calls. */
const CALLS_MAX = 30;
/** Bytes that wait to be sent, beyond which calls go by HTTP. */
const UNSENT_BYTES_MAX = 8 * 1024 ** 2;
/** The longest answer: claims of many commands with large contexts. */
const ANSWER_BYTES_MAX = 512 * 1024 ** 2;
const LOOK_MS = 1_000;
/** Looks without a byte after which the server is asked for a sign of life, and after which it is taken for gone. */
const PING_LOOKS = 10;
const GONE_LOOKS = 20;
const ID_MAX = 0xffff_ffff;

/** Takes over a connection that was upgraded. */
export function openChannel(parts: ChannelParts): MessageChannel {
  const { socket, lookMs = LOOK_MS } = parts;
  const calls = createCalls(() => {
    if (isLeaving) socket.end();
  });
  let silent = 0;
  let isLeaving = false;
  let endedBy: string | undefined;

  const end = (why: string) => {
    if (endedBy !== undefined) return;
    endedBy = why;
    clearInterval(look);
    socket.destroy();
    calls.fail(new Error(why));
    parts.ended(why);
  };
  const take = (message: Message) => {
    if (message.kind === MESSAGE.answer) calls.done(message);
    else if (message.kind === MESSAGE.leave) {
      isLeaving = true;
      parts.left();
      if (calls.count() === 0) socket.end();
    } else if (message.kind === MESSAGE.close) end(`the server closed the connection: ${reasonIn(message.body)}`);
    // Kinds that a later server may send without being asked are nothing to this worker.
  };
  const reader = createMessageReader({
    bytesMax: ANSWER_BYTES_MAX,
    dropMax: ANSWER_BYTES_MAX,
    take,
    dropped: () => end("an answer was too long"),
    failed: () => end("the server sent what is no message"),
    isReady: () => endedBy === undefined,
  });
  const cancel = (id: number) => {
    if (socket.writable) socket.write(encodeMessage(MESSAGE.cancel, id));
  };
  // By counting and not by the time: of a process that stood still the first look comes before the bytes that waited meanwhile.
  const look = setInterval(() => {
    silent += 1;
    if (silent === PING_LOOKS) socket.write(encodeMessage(MESSAGE.ping, 0));
    if (silent >= GONE_LOOKS) end("the server was silent for too long");
    for (const id of calls.look()) cancel(id);
  }, lookMs).unref();
  socket.setNoDelay(true);
  socket.on("data", (chunk: Buffer) => {
    silent = 0;
    reader.push(chunk);
  });
  socket.on("error", (error) => end(error.message));
  socket.on("end", () => end("the server closed the connection"));
  socket.on("close", () => end("the connection was closed"));
  if (parts.head.length > 0) socket.unshift(parts.head);

  return {
    isReady: () =>
      endedBy === undefined && !isLeaving && calls.count() < CALLS_MAX && socket.writableLength < UNSENT_BYTES_MAX,
    async call({ kind, fields, body, timeoutMs, signal }) {
      signal.throwIfAborted();
      if (endedBy !== undefined) throw new Error(endedBy);
      const looks = Math.ceil(timeoutMs / lookMs) + 1;
      const { id, answer } = calls.open(looks, signal, cancel);
      socket.write(encodeMessage(kind, id, 0, fields, body));
      return await answer;
    },
    close: () => end("it was closed here"),
  };
}

interface Waiting {
  done(answer: Message): void;
  failed(error: unknown): void;
  /** In looks. */
  left: number;
  signal: AbortSignal;
  onAbort(): void;
}

/** Calls that wait for their answers, by ids that they are given. `empty` is called when the last one was settled. */
function createCalls(empty: () => void) {
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  const settled = (id: number): Waiting | undefined => {
    const call = waiting.get(id);
    if (call === undefined) return undefined;
    waiting.delete(id);
    call.signal.removeEventListener("abort", call.onAbort);
    if (waiting.size === 0) empty();
    return call;
  };
  return {
    count: () => waiting.size,
    open(looks: number, signal: AbortSignal, aborted: (id: number) => void): { id: number; answer: Promise<Message> } {
      lastId = lastId === ID_MAX ? 1 : lastId + 1;
      const id = lastId;
      const answer = new Promise<Message>((done, failed) => {
        const onAbort = () => {
          settled(id)?.failed(signal.reason);
          aborted(id);
        };
        signal.addEventListener("abort", onAbort, { once: true });
        waiting.set(id, { done, failed, left: looks, signal, onAbort });
      });
      return { id, answer };
    },
    done: (message: Message) => settled(message.id)?.done(message),
    fail(error: Error) {
      for (const id of [...waiting.keys()]) settled(id)?.failed(error);
    },
    /** Another look: gives those whose time is over, which fail. */
    look(): number[] {
      const over: number[] = [];
      for (const [id, call] of waiting) {
        call.left -= 1;
        if (call.left <= 0) over.push(id);
      }
      for (const id of over) settled(id)?.failed(new Error("there was no answer in time"));
      return over;
    },
  };
}

function reasonIn(body: Buffer): string {
  const value = parseReply(body.toString("utf8"));
  const text = isJsonObject(value) ? own(value, "error") : undefined;
  return typeof text === "string" ? text : "it did not say why";
}
