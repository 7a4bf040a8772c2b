/*
 * Messages of a worker connection, as bytes. Every one begins with 13 of them, numbers with the most significant byte first:
 *
 *   0  u32  length of all that follows these four bytes
 *   4  u8   kind
 *   5  u32  id of the call
 *   9  u16  status of an answer; 0 in all others
 *  11  u16  length of the fields
 *  13       the fields, a JSON object of texts; then the body, until the end
 */

/** What a message says. Both texts may be empty. */
export interface Message {
  kind: number;
  id: number;
  status: number;
  fields: Buffer;
  body: Buffer;
}

/** Bytes before the fields. */
const HEAD = 13;
/** Bytes that the length does not count. */
const UNCOUNTED = 4;

/** A message, ready to be written at once. */
export function encodeMessage(
  kind: number,
  id: number,
  status = 0,
  fields = "",
  body: string | Uint8Array = "",
): Buffer {
  const fieldBytes = Buffer.byteLength(fields);
  const length = HEAD + fieldBytes + Buffer.byteLength(body);
  const bytes = Buffer.allocUnsafe(length);
  bytes.writeUInt32BE(length - UNCOUNTED, 0);
  bytes.writeUInt8(kind, 4);
  bytes.writeUInt32BE(id, 5);
  bytes.writeUInt16BE(status, 9);
  bytes.writeUInt16BE(fieldBytes, 11);
  if (fieldBytes > 0) bytes.write(fields, HEAD);
  if (typeof body === "string") bytes.write(body, HEAD + fieldBytes);
  else bytes.set(body, HEAD + fieldBytes);
  return bytes;
}

/** What a {@link MessageReader} needs. */
export interface MessageReaderParts {
  /** The longest message that is kept in memory, in bytes. */
  bytesMax: number;
  /** The longest that is read at all: what is between the two is dropped as it comes. */
  dropMax: number;
  /** `fields` and `body` are parts of a buffer that is not used again. */
  take(message: Message): void;
  /** A message that is longer than `bytesMax`: `bytes` without its first 13. Its content follows and is dropped. */
  dropped(message: { kind: number; id: number; bytes: number }): void;
  /** Nothing that follows can be read: the reader takes no more. */
  failed(reason: "malformed" | "too_long"): void;
  /** False: the next message has to wait, whatever came of it. */
  isReady(): boolean;
}

/** Finds messages in bytes as they come. */
export interface MessageReader {
  push(chunk: Buffer): void;
  /** Goes on with what came while messages had to wait. */
  proceed(): void;
  /** A message has begun and not ended. */
  isWithin(): boolean;
}

/** A reader at the beginning of a message. It holds twice the bytes that came of a message, at most. */
export function createMessageReader(parts: MessageReaderParts): MessageReader {
  const held = createHeld();
  let dropping = 0;
  let hasFailed = false;

  /** Reads what begins at `at`; gives how many bytes that were, 0 if it is not whole. */
  const readOne = (bytes: Buffer, at: number): number => {
    const left = bytes.length - at;
    if (dropping > 0) {
      const now = Math.min(dropping, left);
      dropping -= now;
      return now;
    }
    if (left < HEAD) return 0;
    const length = bytes.readUInt32BE(at) + UNCOUNTED;
    const [kind, id] = [bytes.readUInt8(at + 4), bytes.readUInt32BE(at + 5)];
    const fieldsEnd = HEAD + bytes.readUInt16BE(at + 11);
    if (length > parts.dropMax || fieldsEnd > length) {
      hasFailed = true;
      parts.failed(length > parts.dropMax ? "too_long" : "malformed");
      return left;
    }
    if (length > parts.bytesMax) {
      dropping = length - HEAD;
      parts.dropped({ kind, id, bytes: dropping });
      return HEAD;
    }
    if (left < length) return 0;
    const fields = bytes.subarray(at + HEAD, at + fieldsEnd);
    const body = bytes.subarray(at + fieldsEnd, at + length);
    parts.take({ kind, id, status: bytes.readUInt16BE(at + 9), fields, body });
    return length;
  };
  /** Reads what is whole; gives the rest. */
  const read = (bytes: Buffer): Buffer => {
    let at = 0;
    while (!hasFailed && at < bytes.length && parts.isReady()) {
      const used = readOne(bytes, at);
      if (used === 0) break;
      at += used;
    }
    return hasFailed ? EMPTY : bytes.subarray(at);
  };
  const readHeld = () => {
    const bytes = held.bytes();
    const rest = read(bytes);
    if (rest.length < bytes.length) held.replace(rest);
  };
  return {
    push(chunk) {
      if (held.bytes().length > 0) {
        held.add(chunk);
        readHeld();
      } else held.replace(read(chunk));
    },
    proceed: readHeld,
    isWithin: () => held.bytes().length > 0 || dropping > 0,
  };
}

/** Bytes that wait for those that follow them, in a buffer that grows by doubling: adding byte by byte costs no more than at once. */
function createHeld() {
  let room = EMPTY;
  let end = 0;
  const add = (bytes: Buffer) => {
    if (end + bytes.length > room.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(HELD_BYTES_MIN, 2 * (end + bytes.length)));
      room.copy(larger, 0, 0, end);
      room = larger;
    }
    bytes.copy(room, end);
    end += bytes.length;
  };
  return {
    bytes: () => room.subarray(0, end),
    add,
    /** Into another buffer: messages that were read are parts of this one. */
    replace(rest: Buffer) {
      room = EMPTY;
      end = 0;
      if (rest.length > 0) add(rest);
    },
  };
}

const EMPTY = Buffer.alloc(0);
const HELD_BYTES_MIN = 4 * 1024;
