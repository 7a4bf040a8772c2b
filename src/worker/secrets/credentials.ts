import type { TokenCall } from "../../language/expression/run.ts";
import { ValueNeeded } from "../../language/views/references.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CredentialSource } from "../../ports/credentials.ts";
import type { SecretSource, TokenOptions } from "../../ports/secret-source.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { PARSED_ONLY_KINDS, RUNNABLE_KINDS } from "../../schema/words/playbook.ts";
import { canonicalKind } from "../../schema/words/task-kinds.ts";
import type { Credential, CredentialTokens } from "../../tools/contract/tool.ts";
import { SCRIPT_AUTH } from "../../tools/scripts/auth.ts";
import { FAILURE_KEPT_MS } from "./keychain-errors.ts";

/**
 * The credentials that a task's `auth` names (language document, section 9): a name, `{credential}`, or a map of aliases.
 * A single one stands under `default` too, and so does that of the task's own kind: a map from kinds to credentials
 * gives each tool its own. An inline map (`type` with its fields, or `source`) is left to the tool, as a credential that
 * has no name.
 *
 * Throws `FlowError` when a named credential does not exist.
 */
export async function resolveAuth(
  source: CredentialSource,
  auth: Json | undefined,
  kind: string,
): Promise<Record<string, Credential>> {
  if (auth === undefined || auth === null || auth === "") return {};
  if (typeof auth !== "string" && !isJsonObject(auth)) {
    throw new FlowError("INVALID_INPUT", "'auth' must be the name of a credential, or a map");
  }
  const only = await findCredential(source, auth);
  if (only !== undefined) return { [only.name]: only, default: only };
  return await byAlias(source, auth as JsonObject, kind);
}

/** The credential of a name, of `{credential}`, or of an inline map; undefined for a map of aliases. Throws as above. */
export async function findCredential(
  source: CredentialSource,
  auth: string | JsonObject,
): Promise<Credential | undefined> {
  if (typeof auth === "string") return await find(source, auth);
  const name = own(auth, "credential") ?? own(auth, "name");
  if (typeof name === "string") return withOptions(await find(source, name), auth);
  return typeof own(auth, "type") === "string" || own(auth, "source") !== undefined ? inline(auth) : undefined;
}

async function byAlias(source: CredentialSource, auth: JsonObject, kind: string): Promise<Record<string, Credential>> {
  const aliases = Object.keys(auth);
  const mine = aliases.find((alias) => canonicalKind(alias) === kind);
  const isPerTool = mine !== undefined && aliases.every(isKind);
  const found: Record<string, Credential> = {};
  for (const alias of isPerTool ? [mine] : aliases) {
    const entry = own(auth, alias);
    if (typeof entry === "string") setOwn(found, alias, await find(source, entry));
    else if (isJsonObject(entry)) setOwn(found, alias, (await findCredential(source, entry)) ?? inline(entry));
  }
  const [only, another] = Object.values(found);
  const chosen =
    mine !== undefined ? (own(found, mine) as Credential | undefined) : another === undefined ? only : undefined;
  return chosen === undefined || Object.hasOwn(found, "default") ? found : { ...found, default: chosen };
}

function isKind(alias: string): boolean {
  const kind = canonicalKind(alias);
  return [...RUNNABLE_KINDS, ...PARSED_ONLY_KINDS].some((known) => known === kind);
}

/** `{credential: x, scopes: […]}`: what the token of this credential is wanted for, here. */
function withOptions(credential: Credential, auth: JsonObject): Credential {
  const scopes = own(auth, "scopes");
  return scopes === undefined ? credential : { ...credential, data: { ...credential.data, scopes: scopes as Json } };
}

function inline(auth: JsonObject): Credential {
  return { name: "inline", type: String(own(auth, "type") ?? "custom"), data: auth };
}

async function find(source: CredentialSource, name: string): Promise<Credential> {
  const credential = await source.find(name);
  if (credential !== undefined) return { ...credential, isStored: true };
  throw new FlowError(
    "NOT_FOUND",
    `There is no credential '${name}'; register it, or for a local run set FLOW_CREDENTIAL_<NAME> or add it to the file that FLOW_CREDENTIALS_FILE names`,
  );
}

/**
 * The credential that a task's `script.source.auth` names, for the request that fetches the script (language document,
 * section 8). An inline map is left to the tool. Throws `FlowError` when there is no such credential.
 */
export async function scriptAuth(
  source: CredentialSource,
  kind: string,
  config: JsonObject,
): Promise<Record<string, Credential>> {
  const auth = SCRIPTED.has(kind) ? field(field(config["script"], "source"), "auth") : undefined;
  const isInline = isJsonObject(auth) && own(auth, "credential") === undefined && own(auth, "name") === undefined;
  if (auth === undefined || isInline) return {};
  const { default: named } = await resolveAuth(source, auth, "http");
  return named === undefined ? {} : { [SCRIPT_AUTH]: named };
}

/** Kinds that read a `script`. */
const SCRIPTED: ReadonlySet<string> = new Set(["python", "sqldb", "duckdb", "warehouse"]);

function field(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) ? (own(value, key) as Json | undefined) : undefined;
}

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
