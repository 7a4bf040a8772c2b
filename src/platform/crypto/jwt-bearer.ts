import { createPrivateKey, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { defined } from "../../schema/words/defined.ts";

/** The grant of RFC 7523: an assertion signed with the account's own key. */
export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** Lifetime of an assertion, seconds: the longest that token endpoints take. */
const ASSERTION_SECONDS = 3_600;

/** The account that signs. */
export interface ServiceAccount {
  clientEmail: string;
  /** PEM, PKCS 8 or PKCS 1, of RSA or P-256; in environment variables its line breaks often stand as `\n`. */
  privateKey: string;
  keyId: string | undefined;
  /** For whom the assertion is: the token endpoint. */
  audience: string;
  /** The user in whose name the account acts. */
  subject?: string | undefined;
}

/** An access token for scopes, or an identity token for an audience. */
export type TokenClaim = { scope: string } | { target_audience: string };

/**
 * The form that a token endpoint exchanges for a token (RFC 7523, sections 2.1 and 3). `now` in milliseconds since 1970. Throws
 * an `Error` for a key that cannot sign, which repeats nothing of the key: "is no private key in PEM without a password".
 */
export async function assertionForm(account: ServiceAccount, claim: TokenClaim, now: number): Promise<string> {
  const { clientEmail, keyId, audience, subject } = account;
  const key = signingKey(account.privateKey);
  const issuedAt = Math.floor(now / 1_000);
  const jwt = new SignJWT(claim)
    .setProtectedHeader({ alg: algorithmOf(key), typ: "JWT", ...defined({ kid: keyId }) })
    .setIssuer(clientEmail)
    .setAudience(audience)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ASSERTION_SECONDS);
  if (subject !== undefined) jwt.setSubject(subject);
  return new URLSearchParams({ grant_type: JWT_BEARER, assertion: await jwt.sign(key) }).toString();
}

function signingKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem.replaceAll("\\n", "\n"));
  } catch {
    // The library's message may quote a part of the key.
    throw new Error("is no private key in PEM without a password");
  }
}

function algorithmOf(key: KeyObject): string {
  if (key.asymmetricKeyType === "rsa") return "RS256";
  if (key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1") return "ES256";
  throw new Error("must be an RSA key, or an EC key on P-256");
}
