import { createHash, randomBytes } from "node:crypto";

/** 256 random bits, which cannot be guessed. */
const TOKEN_BYTES = 32;

/** A new token, in base64url: of a session, of a pool, of a worker beside its server. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString("base64url");
}

/** True for a text that may be a session's token. */
export function isSessionToken(text: string): boolean {
  return /^[\w-]{43}$/.test(text);
}

/** SHA-256 of a token in hex: what is stored of it, and what it is known by. */
export function tokenSha256(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
