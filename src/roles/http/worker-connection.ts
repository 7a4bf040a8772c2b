import type { Socket } from "node:net";
import { createMessageReader, encodeMessage, type Message, type MessageReader } from "../../platform/http/messages.ts";
import type { MessageAnswer, MessageCall, MessageCaller } from "../../routes/workers/connection.ts";
import {
  CLOSE_REASONS,
  type CloseReason,
  FIELDS_BYTES_MAX,
  MESSAGE,
  MESSAGE_PATHS,
} from "../../schema/routes/messages.ts";

/** How much a worker connection may hold, and how slow its worker may be. */
export interface ConnectionLimits {
  /** The longest body that any route of a call takes. */
  bodyBytesMax: number;
  /** How often connections are looked at, in milliseconds. Times below are in such looks. */
  lookMs: number;
  /** Looks without a byte. */
  silentLooks: number;
  /** Looks in which a message does not end, or no answer is read. */
  slowLooks: number;
}

/** Calls under way on one connection: what comes beyond is read when one of them is answered. */
const CALLS_MAX = 32;
/** Bytes of the bodies of calls under way, beyond which no further one is read. */
const BODIES_BYTES_MAX = 8 * 1024 ** 2;
/** Bytes of answers that wait to be sent, beyond which no further call is read. */
const UNREAD_BYTES_MAX = 1024 ** 2;
/** Of longer messages not even the end is waited for. */
const DROPPED_BYTES_MAX = 64 * 1024 ** 2;
/** How long a worker may take to close a connection that is closed here, after it was told why. */
const CLOSE_MS = 1_000;

/** What {@link openConnection} needs. */
export interface ConnectionParts {
  /** Undefined for a call that is malformed. */
  answer(call: MessageCall, caller: MessageCaller): Promise<MessageAnswer> | undefined;
  limits: ConnectionLimits;
  /** For the log: why a connection was closed by this side. */
  closed(reason: CloseReason): void;
}

/** One worker connection. */
export interface Connection {
  /** `head`: what came after the request that was upgraded. */
  begin(head: Buffer): void;
  /** Closes it if it is silent, or slow. */
  look(): void;
  /** Tells the worker to make its next calls elsewhere. */
  leave(): void;
  /** Closes it when the calls under way are answered. */
  stop(): void;
  cut(): void;
}

/** Takes over a socket. `ended` is called when it is closed. */
export function openConnection(
  { answer, limits, closed }: ConnectionParts,
  caller: MessageCaller,
  socket: Socket,
  ended: (reason: CloseReason | "left") => void,
): Connection {
  const calls = createCalls();
  const { write, close, reason } = createOutlet(socket, closed);
  let isStopping = false;

  const isReady = () => reason() === undefined && calls.haveRoom() && socket.writableLength < UNREAD_BYTES_MAX;
  const proceed = () => {
    if (!isReady()) return;
    reader.proceed();
    if (isReady() && socket.isPaused()) socket.resume();
  };
  const end = (id: number, { status, fields, text }: MessageAnswer) => {
    calls.end(id);
    write(MESSAGE.answer, id, status, fields, text);
    // Every call looks the token up. One that is not taken any more needs no connection.
    if (status === UNAUTHENTICATED) close("unauthenticated");
    else if (isStopping && calls.count() === 0) close("stopping");
    else proceed();
  };
  const call = (kind: number, id: number, fields: Buffer, body: Buffer, bytes: number) => {
    const signal = calls.open(id, body.length);
    if (signal === undefined) return close("id_in_use");
    const answered = answer({ kind, fields, body, bytes, signal }, caller);
    if (answered === undefined) return close("malformed");
    void answered.catch(() => FAULT).then((given) => end(id, given));
  };
  const reader = createMessageReader({
    bytesMax: limits.bodyBytesMax + FIELDS_BYTES_MAX,
    dropMax: DROPPED_BYTES_MAX,
    isReady,
    take: ({ kind, id, fields, body }: Message) => {
      watch.took();
      if (MESSAGE_PATHS[kind] !== undefined) call(kind, id, fields, body, body.length);
      else if (kind === MESSAGE.ping) write(MESSAGE.pong, id);
      else if (kind === MESSAGE.cancel) calls.cancel(id);
      else close("unknown_kind");
    },
    // Refused by its announced length, as the route does before it reads anything.
    dropped: ({ kind, id, bytes }) =>
      MESSAGE_PATHS[kind] === undefined ? close("unknown_kind") : call(kind, id, EMPTY, EMPTY, bytes),
    failed: close,
  });
  const watch = createWatch(limits, { socket, reader, isReady });
  const push = (chunk: Buffer) => {
    watch.came();
    if (reason() !== undefined) return;
    reader.push(chunk);
    if (reason() === undefined && !isReady()) socket.pause();
  };
  socket.on("data", push).on("drain", proceed);
  socket.on("close", () => {
    calls.cancelAll();
    ended(reason() ?? "left");
  });
  return {
    begin: (head) => (head.length > 0 ? push(head) : undefined),
    look: () => watch.look(close),
    leave: () => write(MESSAGE.leave, 0),
    stop() {
      isStopping = true;
      if (calls.count() === 0) close("stopping");
    },
    cut: () => socket.destroy(),
  };
}

/** What is sent on a connection, the last message included. */
function createOutlet(socket: Socket, closed: (reason: CloseReason) => void) {
  let reason: CloseReason | undefined;
  const write = (kind: number, id: number, status = 0, fields = "", body = "") => {
    if (socket.writable) socket.write(encodeMessage(kind, id, status, fields, body));
  };
  socket.setTimeout(0);
  socket.setNoDelay(true);
  // The worker has left. What it waited for need not go on.
  socket.on("end", () => socket.destroy());
  socket.on("error", () => undefined);
  return {
    write,
    /** Why it was closed by this side; undefined while it is not. */
    reason: () => reason,
    close(why: CloseReason) {
      if (reason !== undefined) return;
      reason = why;
      closed(why);
      write(MESSAGE.close, 0, 0, "", JSON.stringify({ code: why, error: CLOSE_REASONS[why] }));
      socket.end();
      // What still comes is not looked at, but read: closing over unread bytes would take the reason from the worker.
      socket.resume();
      setTimeout(() => socket.destroy(), CLOSE_MS).unref();
    },
  };
}

const EMPTY = Buffer.alloc(0);
const UNAUTHENTICATED = 401;
/** Errors are answers by now; what is none leaves its caller without more than this. */
const FAULT: MessageAnswer = {
  status: 500,
  fields: "",
  text: '{"error":"The server failed at this call","code":"INTERNAL"}',
};

interface Call {
  bytes: number;
  /** Most calls never ask for it. */
  controller: AbortController | undefined;
  isCancelled: boolean;
}

/** The calls under way of one connection. */
function createCalls() {
  const calls = new Map<number, Call>();
  let bodyBytes = 0;
  const cancelOne = (call: Call | undefined) => {
    if (call === undefined) return;
    call.isCancelled = true;
    call.controller?.abort();
  };
  return {
    count: () => calls.size,
    haveRoom: () => calls.size < CALLS_MAX && bodyBytes < BODIES_BYTES_MAX,
    /** The call's signal, made when it is asked for; undefined where the id is in use. */
    open(id: number, bytes: number): (() => AbortSignal) | undefined {
      if (calls.has(id)) return undefined;
      const call: Call = { bytes, controller: undefined, isCancelled: false };
      calls.set(id, call);
      bodyBytes += bytes;
      return () => {
        call.controller ??= new AbortController();
        if (call.isCancelled) call.controller.abort();
        return call.controller.signal;
      };
    },
    end(id: number) {
      bodyBytes -= calls.get(id)?.bytes ?? 0;
      calls.delete(id);
    },
    cancel: (id: number) => cancelOne(calls.get(id)),
    cancelAll() {
      for (const call of calls.values()) cancelOne(call);
    },
  };
}

/** Notices a worker that is silent, or slow, by looking at its connection now and then: nothing is measured with each message. */
function createWatch(
  limits: ConnectionLimits,
  { socket, reader, isReady }: { socket: Socket; reader: MessageReader; isReady(): boolean },
) {
  /** Looks since a byte came, since a message has begun, and since the answers that wait have become fewer. */
  let [silent, within, unread] = [0, 0, 0];
  let unreadBytes = 0;
  return {
    came() {
      silent = 0;
    },
    took() {
      within = 0;
    },
    look(close: (reason: CloseReason) => void) {
      // While it has more under way than it may, nothing is read of it.
      silent = isReady() ? silent + 1 : 0;
      within = reader.isWithin() && isReady() ? within + 1 : 0;
      const bytes = socket.writableLength;
      unread = bytes > 0 && bytes >= unreadBytes ? unread + 1 : 0;
      unreadBytes = bytes;
      if (silent > limits.silentLooks) close("idle");
      else if (within > limits.slowLooks || unread > limits.slowLooks) close("slow");
    },
  };
}
