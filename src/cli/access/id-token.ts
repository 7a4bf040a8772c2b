import * as v from "valibot";
import { FlowError } from "../../schema/words/errors.ts";

/** Claims of an ID token that the CLI reads. */
export interface IdTokenClaims {
  /** Host (and port) of its issuer: the domain in a gateway's settings by default. */
  issuerHost: string;
  nonce: string | undefined;
}

const Claims = v.object({ iss: v.pipe(v.string(), v.url()), nonce: v.exactOptional(v.string()) });

/**
 * Reads an ID token without verifying it: the gateway does that. `what` is its source, for the error. Throws `FlowError`
 * INVALID_INPUT for any other text, which the message does not quote.
 */
export function readIdToken(token: string, what: string): IdTokenClaims {
  const [, payload, ...rest] = token.split(".");
  const claims = rest.length === 1 ? v.safeParse(Claims, parse(payload ?? "")) : undefined;
  if (claims?.success !== true) {
    const hint = "an ID token has three parts between dots, and names its issuer";
    throw new FlowError("INVALID_INPUT", `${what} holds no ID token: ${hint}. An access token is not an ID token`);
  }
  const { iss, nonce } = claims.output;
  return { issuerHost: new URL(iss).host, nonce };
}

function parse(payload: string): unknown {
  try {
    return JSON.parse(Buffer.from(payload, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
}
