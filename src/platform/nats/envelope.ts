/** A value with the moment at which it expires. */
export interface Envelope {
  value: Uint8Array;
  /** Milliseconds since 1970; undefined: never. */
  expiresAt: number | undefined;
}

/** First bytes of an envelope. No text starts with them: values of other programs are not mistaken for one. */
const MARK = [0x01, 0x66, 0x6c, 0x31] as const;
/** The mark, and the expiry as a 64-bit float. */
const HEADER_BYTES = MARK.length + 8;

/**
 * NATS before 2.11 knows no time to live of a single key: it travels in front of the value. A value without one stays as it is,
 * so that others who use the bucket can read it.
 */
export function encodeEnvelope({ value, expiresAt }: Envelope): Uint8Array {
  if (expiresAt === undefined && !isMarked(value)) return value;
  const bytes = new Uint8Array(HEADER_BYTES + value.byteLength);
  bytes.set(MARK);
  new DataView(bytes.buffer).setFloat64(MARK.length, expiresAt ?? Number.POSITIVE_INFINITY);
  bytes.set(value, HEADER_BYTES);
  return bytes;
}

/** The reverse. What was written by another program is its value. */
export function decodeEnvelope(bytes: Uint8Array): Envelope {
  if (!isMarked(bytes) || bytes.byteLength < HEADER_BYTES) return { value: bytes, expiresAt: undefined };
  const expiresAt = new DataView(bytes.buffer, bytes.byteOffset).getFloat64(MARK.length);
  return { value: bytes.subarray(HEADER_BYTES), expiresAt: Number.isFinite(expiresAt) ? expiresAt : undefined };
}

function isMarked(bytes: Uint8Array): boolean {
  return MARK.every((byte, index) => bytes[index] === byte);
}
