import { createHash, timingSafeEqual } from "node:crypto";
import type { Secret } from "../../platform/crypto/secret.ts";

/** The token of an `Authorization` header (RFC 6750, section 2.1); undefined without one, or where it brings something else. */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
}

/** Says whether a token is the expected one. The time that it takes tells nothing about the token. */
export function tokenMatcher(expected: Secret): (given: string) => boolean {
  const wanted = tokenDigest(expected.reveal());
  return (given) => timingSafeEqual(tokenDigest(given), wanted);
}

/** What is compared instead of a token: of one length whatever was given. */
export function tokenDigest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
