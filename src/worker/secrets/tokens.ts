import type { TokenCall } from "../../language/expression/run.ts";
import { ValueNeeded } from "../../language/views/references.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CredentialSource } from "../../ports/credentials.ts";
import type { SecretSource, TokenOptions } from "../../ports/secret-source.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, own } from "../../schema/words/json.ts";
import type { Credential, CredentialTokens } from "../../tools/contract/tool.ts";
import { FAILURE_KEPT_MS } from "./keychain-errors.ts";
import { findCredential } from "./resolve-auth.ts";

/** The OAuth tokens of one command: for `token(…)` of its templates, and for its tools. */
export interface CommandTokens {
  /** Answers `token(credential, scopes=…, audience=…)` (language document, section 4.7). */
  template(call: TokenCall): string;
  /** What a tool is given. */
  forTool(signal: AbortSignal): CredentialTokens;
}

/** What tokens are made of. */
export interface TokenParts {
  credentials: CredentialSource;
  secretSource: SecretSource | undefined;
  clock: Clock;
  /** Called with every token: it is a secret. */
  note(secret: Json): void;
  signal: AbortSignal;
}

/** Tokens as this command asks for them; those of all commands of the worker are kept by the source. */
export function openTokens(parts: TokenParts): CommandTokens {
  /** What was fetched for a template, which then is evaluated again. */
  const fetched = new Map<string, { token: string | FlowError; until: number }>();
  const source = () => {
    if (parts.secretSource !== undefined) return parts.secretSource;
    throw new FlowError("INVALID_INPUT", "Tokens of credentials cannot be requested here");
  };
  const request = async (credential: Credential, wish: TokenOptions, signal: AbortSignal) => {
    const answer = await source().token(credential, wish, signal);
    parts.note(answer.token);
    return answer;
  };
  const fetch = async (key: string, call: TokenCall) => {
    const now = () => parts.clock.now();
    try {
      const { auth, wish } = readCall(call);
      const credential = await findCredential(parts.credentials, auth);
      if (credential === undefined) throw notACredential();
      const { token, expiresAt } = await request(credential, wish, parts.signal);
      fetched.set(key, { token, until: Math.max(expiresAt, now() + 1_000) });
    } catch (error) {
      if (!(error instanceof FlowError)) throw error;
      fetched.set(key, { token: error, until: now() + FAILURE_KEPT_MS });
    }
  };
  return {
    template(call) {
      const key = JSON.stringify([call.args, call.named]);
      const known = fetched.get(key);
      if (known === undefined || parts.clock.now() >= known.until) {
        throw new ValueNeeded("token()", () => fetch(key, call));
      }
      if (known.token instanceof FlowError) throw known.token;
      return known.token;
    },
    forTool: (signal) => ({
      of: async (credential, wish = {}) => (await request(credential, wish, signal)).token,
      forget: (token) => parts.secretSource?.forget(token),
    }),
  };
}

/** `token(credential, scopes, audience)`; each of them by name too, `auth` being another word for the first. */
function readCall({ args, named }: TokenCall): { auth: string | Record<string, Json>; wish: TokenOptions } {
  const auth = args[0] ?? own(named, "credential") ?? own(named, "auth");
  if (typeof auth !== "string" && !isJsonObject(auth)) throw notACredential();
  const scopes = args[1] ?? own(named, "scopes") ?? own(named, "scope");
  const audience = args[2] ?? own(named, "audience") ?? own(named, "target_audience");
  const words = typeof scopes === "string" ? scopes.split(/[\s,]+/) : Array.isArray(scopes) ? scopes.map(String) : [];
  const wanted = words.filter((word) => word !== "");
  return {
    auth,
    wish: {
      ...(wanted.length > 0 && { scopes: wanted }),
      ...(typeof audience === "string" && audience !== "" && { audience }),
    },
  };
}

function notACredential(): FlowError {
  return new FlowError("TEMPLATE_ERROR", "token() takes the name of a credential, as in token('my_oauth')");
}
