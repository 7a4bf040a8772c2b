import { createPrivateKey, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { addressOf, requiredText, textField } from "./fields.ts";
import { refused, type SecretAnswer, type SendSecret } from "./request.ts";
import { formOf } from "./token-request.ts";

/** The grant of RFC 7523: an assertion signed with the account's own key. */
export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** Lifetime of an assertion, seconds: the longest that token endpoints take. */
const ASSERTION_SECONDS = 3_600;

/** What an assertion asks for: an access token for scopes, or an identity token for an audience. */
type Claim = { scope: string } | { target_audience: string };

/** The assertion of a service account as form fields' value (RFC 7523, section 3). `now` in milliseconds since 1970. */
async function signAssertion(where: string, data: JsonObject, claim: Claim, now: number): Promise<string> {
  const key = privateKey(where, requiredText(where, data, "private_key"));
  const keyId = textField(data, "private_key_id");
  const subject = textField(data, "subject");
  const issuedAt = Math.floor(now / 1_000);
  const jwt = new SignJWT(claim)
    .setProtectedHeader({ alg: algorithmOf(where, key), typ: "JWT", ...(keyId !== undefined && { kid: keyId }) })
    .setIssuer(requiredText(where, data, "client_email"))
    .setAudience(textField(data, "audience") ?? tokenUri(where, data).href)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + ASSERTION_SECONDS);
  if (subject !== undefined) jwt.setSubject(subject);
  return await jwt.sign(key);
}

/** Exchanges an assertion for a token (RFC 7523, section 2.1). Throws `FlowError` for any status but 200. */
export async function requestByAssertion(
  send: SendSecret,
  where: string,
  data: JsonObject,
  claim: Claim,
  now: number,
  signal: AbortSignal,
): Promise<SecretAnswer> {
  const assertion = await signAssertion(where, data, claim, now);
  const answer = await send(
    {
      method: "POST",
      url: tokenUri(where, data),
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: formOf({ grant_type: JWT_BEARER, assertion }),
    },
    signal,
  );
  if (answer.status !== 200) throw refused(answer);
  return answer;
}

function tokenUri(where: string, data: JsonObject): URL {
  return addressOf(`${where}: 'token_uri'`, requiredText(where, data, "token_uri"));
}

/** A key in PEM, PKCS 8 or PKCS 1; in environment variables its line breaks often stand as `\n`. */
function privateKey(where: string, pem: string): KeyObject {
  try {
    return createPrivateKey(pem.replaceAll("\\n", "\n"));
  } catch {
    // The library's message may quote a part of the key.
    throw new FlowError("INVALID_INPUT", `${where}: 'private_key' is no private key in PEM without a password.`);
  }
}

function algorithmOf(where: string, key: KeyObject): string {
  if (key.asymmetricKeyType === "rsa") return "RS256";
  if (key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1") return "ES256";
  throw new FlowError("INVALID_INPUT", `${where}: 'private_key' must be an RSA key, or an EC key on P-256.`);
}
