import type { Socket } from "node:net";

/** A connection to the database seen from outside: by the messages that pass, not by their contents. */
export interface Wire {
  /** Since when an answer has been outstanding without any data, on the given clock; undefined if no answer is outstanding. */
  silentSince(): number | undefined;
  /** A session has begun: the login is over. */
  isReady(): boolean;
  /** The session's process, as the server or a pooler in front of it says; 0 before the login is over. */
  pid(): number;
  /** The message that asks the server to cancel the current statement, for a separate connection. */
  cancelRequest(): Buffer;
  /** Ends the connection. Its pending statements fail with the reason. */
  destroy(reason: Error): void;
}

/** Events that a watch reports. */
export interface WireEvents {
  /** An answer is owed from now on. */
  requestSent(): void;
  /** Nothing is owed: the server has answered all. `isFirst`: the login is over. */
  answered(isFirst: boolean): void;
}

/* Types of messages (PostgreSQL, Message Formats). */
const QUERY = 0x51;
const SYNC = 0x53;
const TERMINATE = 0x58;
const READY_FOR_QUERY = 0x5a;
const BACKEND_KEY_DATA = 0x4b;
/** A message is its type, one byte, and its length with itself, four bytes. */
const HEADER = 5;
const CANCEL_REQUEST = 80_877_102;

/**
 * Watches a connection that has just been made. The driver does not notice a connection that has gone silent, and waits for as
 * long as TCP does: a quarter of an hour. It costs some 20 ns per message, to read its header.
 * | It also works around three faults of the driver (3.4.9). A statement given to a connection between its `error` and its
 * `close` is never answered: the driver gets only `close`. A connection that ends during the login is made again for ever:
 * there it gets an `error` first. A connection that ends while the driver is about to write keeps those bytes, and the next one
 * stays silent: it is ended at once, and the leftover bytes are cut off the next login.
 */
export function watchWire(socket: Socket, now: () => number, events: WireEvents): Wire {
  const owed = countOwed();
  let silentSince: number | undefined;
  let isReady = false;
  let isUnused = true;
  let reason: Error | undefined;
  const unusedTimer = setTimeout(() => end(closedError("The driver did not begin a session")), UNUSED_MS).unref();
  const end = (why: Error) => {
    reason ??= why;
    socket.destroy();
  };
  const write = socket.write.bind(socket) as (chunk: Buffer, ...rest: unknown[]) => boolean;
  const noted = (chunk: Buffer, ...rest: unknown[]): boolean => {
    const isFirst = isUnused;
    if (isFirst) {
      isUnused = false;
      clearTimeout(unusedTimer);
    }
    if (owed.sent(chunk) && silentSince === undefined) {
      silentSince = now();
      events.requestSent();
    }
    return write(isFirst ? loginOf(chunk) : chunk, ...rest);
  };
  socket.write = noted as typeof socket.write;
  const emit = socket.emit.bind(socket) as (event: string, ...rest: unknown[]) => boolean;
  const forward = (event: string, ...rest: unknown[]): boolean => {
    if (event === "error") {
      reason ??= rest[0] as Error;
      return true;
    }
    if (event !== "close") return emit(event, ...rest);
    clearTimeout(unusedTimer);
    if (!isReady) emit("error", reason ?? closedError("The connection was closed"));
    return emit("close", false);
  };
  socket.emit = forward as typeof socket.emit;
  socket.on("data", (chunk: Buffer) => {
    if (owed.received(chunk)) {
      silentSince = now();
      return;
    }
    silentSince = undefined;
    const isFirst = !isReady;
    isReady = true;
    events.answered(isFirst);
  });
  return {
    silentSince: () => silentSince,
    isReady: () => isReady,
    pid: () => (owed.key.length === 0 ? 0 : owed.key.readUInt32BE(0)),
    cancelRequest: () => {
      const header = Buffer.alloc(8);
      header.writeUInt32BE(header.length + owed.key.length, 0);
      header.writeUInt32BE(CANCEL_REQUEST, 4);
      return Buffer.concat([header, owed.key]);
    },
    destroy: end,
  };
}

function closedError(message: string): Error {
  return Object.assign(new Error(message), { code: "CONNECTION_CLOSED" });
}

/** The driver writes its first message in the same turn in which it is given a connection. */
const UNUSED_MS = 250;
const PROTOCOL_3 = 196_608;

/** The message that begins a session, without what may stand before it: it is the last one, and begins with its length. */
function loginOf(chunk: Buffer): Buffer {
  for (let at = 0; at + 8 <= chunk.length; at += 1) {
    if (chunk.readUInt32BE(at) === chunk.length - at && chunk.readUInt32BE(at + 4) === PROTOCOL_3)
      return chunk.subarray(at);
  }
  return chunk;
}

/** Counts what is asked and answered. Both functions say whether an answer is owed. */
function countOwed() {
  /** Messages that are each answered by one "ready for query", and have not been. The login is one. */
  let open = 1;
  /** Something was sent after the last of them: the driver asks for a statement's types before it binds its values. */
  let isHalf = false;
  let isLogin = true;
  let key: Buffer = Buffer.alloc(0);
  /** The messages of the server, in whatever pieces they come. */
  let rest: Buffer = Buffer.alloc(0);
  let skip = 0;
  const isOwed = () => open > 0 || isHalf;
  return {
    get key() {
      return key;
    },
    sent(chunk: Buffer): boolean {
      // The driver writes whole messages. Those of the login, of which the first has no type, are all before the first answer.
      if (isLogin) return true;
      for (let at = 0; at + HEADER <= chunk.length; at += 1 + chunk.readUInt32BE(at + 1)) {
        const type = chunk[at];
        if (type === TERMINATE) return isOwed();
        const isLast = type === QUERY || type === SYNC;
        if (isLast) open += 1;
        isHalf = !isLast;
      }
      return isOwed();
    },
    received(chunk: Buffer): boolean {
      let at = 0;
      if (skip > 0) {
        at = Math.min(skip, chunk.length);
        skip -= at;
        if (skip > 0) return isOwed();
      }
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      rest = EMPTY;
      while (at < bytes.length) {
        const left = bytes.length - at;
        // A key is read as a whole; of others the header is all that matters.
        const needed =
          left < HEADER ? HEADER : bytes[at] === BACKEND_KEY_DATA ? 1 + bytes.readUInt32BE(at + 1) : HEADER;
        if (left < needed) {
          rest = bytes.subarray(at);
          break;
        }
        const length = 1 + bytes.readUInt32BE(at + 1);
        if (bytes[at] === BACKEND_KEY_DATA) key = Buffer.from(bytes.subarray(at + HEADER, at + length));
        if (bytes[at] === READY_FOR_QUERY) {
          open = Math.max(0, open - 1);
          isLogin = false;
        }
        if (left < length) skip = length - left;
        at += length;
      }
      return isOwed();
    },
  };
}

const EMPTY: Buffer = Buffer.alloc(0);
