import { decodeJwt } from "jose";
import { FlowError } from "../../schema/words/errors.ts";

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
