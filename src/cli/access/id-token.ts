import * as v from "valibot";
import { FlowError } from "../../schema/words/errors.ts";

/** What an ID token says of itself. */
export interface IdTokenClaims {
  /** Host (and port) of its issuer: what gateways call its domain, unless they are told otherwise. */
  issuerHost: string;
  nonce: string | undefined;
}

const Claims = v.object({ iss: v.pipe(v.string(), v.url()), nonce: v.exactOptional(v.string()) });

/**
 * Reads an ID token without believing it: that is the gateway's part. `what` is where it came from, for the error. Throws
 * `FlowError` INVALID_INPUT for a text that is none; nothing of it stands in the message.
 */
export function readIdToken(token: string, what: string): IdTokenClaims {
  const [, payload, ...rest] = token.split(".");
  const claims = rest.length === 1 ? v.safeParse(Claims, parse(payload ?? "")) : undefined;
  if (claims?.success !== true) {
    const hint = "an ID token has three parts between dots, and names its issuer";
    throw new FlowError("INVALID_INPUT", `${what} holds no ID token: ${hint}. An access token is none`);
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
