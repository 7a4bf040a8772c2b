import { decodeJwt } from "jose";
import { assertionForm, type TokenClaim } from "../../platform/crypto/jwt-bearer.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { addressOf, requiredText, textField } from "./fields.ts";
import { refused, type SecretAnswer, type SendSecret } from "./request.ts";

/**
 * Exchanges an assertion of a credential's service account for a token (RFC 7523, section 2.1). Throws `FlowError`: INVALID_INPUT
 * for data that cannot sign, and for any status but 200.
 */
export async function requestByAssertion(
  send: SendSecret,
  where: string,
  data: JsonObject,
  claim: TokenClaim,
  now: number,
  signal: AbortSignal,
): Promise<SecretAnswer> {
  const url = addressOf(`${where}: 'token_uri'`, requiredText(where, data, "token_uri"));
  const account = {
    clientEmail: requiredText(where, data, "client_email"),
    privateKey: requiredText(where, data, "private_key"),
    keyId: textField(data, "private_key_id"),
    audience: textField(data, "audience") ?? url.href,
    subject: textField(data, "subject"),
  };
  const body = await assertionForm(account, claim, now).catch((error: unknown) => {
    throw new FlowError("INVALID_INPUT", `${where}: 'private_key' ${messageOf(error)}.`);
  });
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const answer = await send({ method: "POST", url, headers, body }, signal);
  if (answer.status !== 200) throw refused(answer);
  return answer;
}

/** When an identity token ends, milliseconds since 1970, as it says itself. `what` was asked for it. */
export function identityExpiry(what: string, token: string): number {
  try {
    const { exp } = decodeJwt(token);
    if (exp !== undefined) return exp * 1_000;
  } catch {
    // Reported below, without the text.
  }
  throw new FlowError("UNAUTHENTICATED", `${what} answered with no identity token.`);
}
