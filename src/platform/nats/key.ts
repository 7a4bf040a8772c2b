/**
 * A key in NATS' alphabet: a valid one stays readable for other programs, any other text is encoded behind a `=`, with which no
 * plain key begins.
 */
export function encodeNatsKey(key: string): string {
  const isPlain = /^[\w/-][\w/=-]*(\.[\w/=-]+)*$/.test(key);
  return isPlain ? key : `=${Buffer.from(key).toString("base64url")}`;
}

/** The reverse. */
export function decodeNatsKey(key: string): string {
  return key.startsWith("=") ? Buffer.from(key.slice(1), "base64url").toString() : key;
}
