import { createHash, createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { defined } from "../../schema/words/defined.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { parseJsonKeepingDigits } from "../contract/parse-big-integers.ts";
import { configurationError } from "../contract/task-config.ts";
import { kindOfStatus } from "../http/errors.ts";
import { isAnswer, type SqlHttp } from "../sql/http-client.ts";
import type { SnowflakeConnection, SnowflakeLogin } from "./connection.ts";

/** The login of a connection. */
export interface SnowflakeAuth {
  headers: Readonly<Record<string, string>>;
}

interface Session {
  auth: Promise<SnowflakeAuth | ToolResult>;
  /** What `auth` gave, as soon as it has. */
  value?: SnowflakeAuth | ToolResult;
  expiresAt: number;
}

/** Lifetime of a signed token, seconds; a warehouse takes an hour at most. */
const JWT_SECONDS = 3_000;
/** Longest wait for a login, milliseconds. It belongs to no task: others may wait for it too. */
const LOGIN_MS = 30_000;
/** A token is renewed so long before it ends, milliseconds. */
const RENEW_MS = 60_000;

/**
 * The ways in: a token is sent as it is, a private key signs one, and a password is exchanged for a session's token at
 * the warehouse's login, since its SQL interface takes no password. Holds the tokens of sessions and keys until they end,
 * of at most so many logins.
 */
export class SnowflakeSessions {
  readonly #http: SqlHttp;
  readonly #sessionsMax: number;
  readonly #open = new Map<string, Session>();

  constructor(http: SqlHttp, sessionsMax = 64) {
    this.#http = http;
    this.#sessionsMax = sessionsMax;
  }

  /**
   * The headers for a connection, or a failed result. Concurrent tasks of one login share the attempt. `stale` are headers that
   * the warehouse no longer accepts: new ones are fetched, unless another task did so already.
   */
  async authorize(
    connection: SnowflakeConnection,
    signal: AbortSignal,
    stale?: SnowflakeAuth,
  ): Promise<SnowflakeAuth | ToolResult> {
    const { login, origin } = connection;
    if (login.by === "token") return bearer(login.token, login.tokenType);
    const key = loginKey(connection);
    const known = this.#open.get(key);
    const isGood =
      known !== undefined && known.expiresAt > Date.now() && (stale === undefined || known.value !== stale);
    if (isGood) return await unlessAborted(known.auth, signal);
    const auth = login.by === "key" ? signed(login) : this.#logIn(login, origin);
    const entry: Session = { auth, expiresAt: Date.now() + JWT_SECONDS * 1_000 - RENEW_MS };
    this.#open.delete(key);
    this.#open.set(key, entry);
    const [oldest] = this.#open.keys();
    if (this.#open.size > this.#sessionsMax && oldest !== undefined) this.#open.delete(oldest);
    auth.then(
      (result) => {
        entry.value = result;
        if (!isAuth(result)) this.#forget(key, entry);
      },
      () => this.#forget(key, entry),
    );
    return await unlessAborted(auth, signal);
  }

  #forget(key: string, entry: Session): void {
    if (this.#open.get(key) === entry) this.#open.delete(key);
  }

  async #logIn(login: SnowflakeLogin & { by: "password" }, origin: URL): Promise<SnowflakeAuth | ToolResult> {
    const url = new URL("/session/v1/login-request", origin);
    const data = {
      CLIENT_APP_ID: "flow",
      CLIENT_APP_VERSION: "1",
      ACCOUNT_NAME: login.account,
      LOGIN_NAME: login.user,
      PASSWORD: login.password,
    };
    const headers = { accept: "application/json", "content-type": "application/json" };
    const answer = await this.#http.send(
      { method: "POST", url, headers, body: JSON.stringify({ data }) },
      AbortSignal.timeout(LOGIN_MS),
    );
    if (!isAnswer(answer)) return answer;
    const body = parseBody(answer.text);
    const inner = isJsonObject(body) ? own(body, "data") : undefined;
    const token = isJsonObject(inner) ? own(inner, "token") : undefined;
    if (answer.status === 200 && typeof token === "string") {
      return { headers: { authorization: `Snowflake Token="${token}"` } };
    }
    const message = isJsonObject(body) ? own(body, "message") : undefined;
    const why = typeof message === "string" && message !== "" ? message : `it answered ${answer.status}`;
    const kind = answer.status < 400 ? "auth" : kindOfStatus(answer.status);
    const code = answer.status < 400 ? "LOGIN_REFUSED" : `HTTP_${answer.status}`;
    return failed(kind, code, `Logging in to the warehouse at ${origin.host} as ${login.user} failed: ${why}`, {
      retryable: answer.status === 429 || answer.status >= 500,
    });
  }
}

/** True for headers, false for a failed result. */
export function isAuth(outcome: SnowflakeAuth | ToolResult): outcome is SnowflakeAuth {
  return "headers" in outcome;
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function parseBody(text: string): unknown {
  try {
    return parseJsonKeepingDigits(text);
  } catch {
    return undefined;
  }
}

function bearer(token: string, type: string | undefined): SnowflakeAuth {
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (type !== undefined) headers["x-snowflake-authorization-token-type"] = type;
  return { headers };
}

/** Key-pair authentication: the token names the account, the user and the fingerprint of the public key. */
async function signed(login: SnowflakeLogin & { by: "key" }): Promise<SnowflakeAuth> {
  const key = privateKey(login.privateKey, login.passphrase);
  const der = createPublicKey(key).export({ type: "spki", format: "der" });
  const subject = `${claimAccount(login.account)}.${login.user.toUpperCase()}`;
  const issuer = `${subject}.SHA256:${createHash("sha256").update(der).digest("base64")}`;
  const now = Math.floor(Date.now() / 1_000);
  const jwt = new SignJWT()
    .setProtectedHeader({ alg: "RS256", typ: "JWT" })
    .setIssuer(issuer)
    .setSubject(subject)
    .setIssuedAt(now)
    .setExpirationTime(now + JWT_SECONDS);
  return bearer(await jwt.sign(key), "KEYPAIR_JWT");
}

/** The account without its region (`xy12345.eu-central-1`), in capitals; a global one up to its hyphen. */
function claimAccount(account: string): string {
  const cut = account.includes(".global") ? account.indexOf("-") : account.indexOf(".");
  return (cut > 0 ? account.slice(0, cut) : account).toUpperCase();
}

function privateKey(pem: string, passphrase: string | undefined): KeyObject {
  try {
    const key = createPrivateKey({ key: pem.replaceAll("\\n", "\n"), ...defined({ passphrase }) });
    if (key.asymmetricKeyType === "rsa") return key;
  } catch {
    // The library's message may quote a part of the key.
  }
  throw configurationError(
    'The warehouse credential\'s "private_key" is no RSA key in PEM, or "private_key_passphrase" does not open it.',
  );
}

/** Names a login in the map without showing its secret. */
function loginKey({ origin, login }: SnowflakeConnection): string {
  return createHash("sha256")
    .update(JSON.stringify([origin.href, login]))
    .digest("hex");
}
