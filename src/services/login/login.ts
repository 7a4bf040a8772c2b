import { newToken, tokenSha256 } from "../../platform/crypto/token.ts";
import type { AuthorizationCode, CallbackBody, KnownSession, LoginInput } from "../../schema/api/gateway.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import type { Callbacks, Expected } from "./callbacks.ts";
import type { LoginLimit } from "./rate-limit.ts";

/** A login request: an ID token or a code for one, and where it comes from. */
export type LoginRequest = ({ idpToken: string } | { code: AuthorizationCode }) & {
  idpDomain: string;
  address: string | undefined;
  userAgent: string | undefined;
};

/** A session that has begun. Its token is nowhere but here. */
export interface LoggedIn extends KnownSession {
  sessionToken: string;
}

/** Of an ID token that is believed. */
export interface VerifiedIdentity {
  domain: string;
  issuer: string;
  subject: string;
  email: string;
  displayName: string;
}

/** A login that was refused before its playbook could begin. */
export interface RefusedLogin {
  idpDomain: string;
  address: string | undefined;
  code: string;
  reason: string;
}

/** What {@link createLogin} needs. */
export interface LoginDeps {
  /** Names of providers that people may log in with. */
  isDomain(domain: string): boolean;
  limit: LoginLimit;
  /** The ID token that the provider gives for a code. Throws FORBIDDEN for an unknown domain. */
  exchange(domain: string, code: AuthorizationCode): Promise<string>;
  /** With `nonce` the token must have it. */
  verify(domain: string, token: string, nonce?: string): Promise<VerifiedIdentity>;
  callbacks: Callbacks;
  /** Starts the login's playbook and gives the execution. With a key that was used before: `FlowError` CONFLICT. */
  start(input: LoginInput, idempotencyKey: string): Promise<string>;
  /** Resolves with the status of the execution when it has ended. Rejects when the signal aborts. */
  ended(executionId: string, signal: AbortSignal): Promise<string>;
  /** What the server says of the new session. */
  sessionOf(tokenSha256: string, address: string | undefined): Promise<KnownSession | undefined>;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** A login succeeded although its callback did not come: workers cannot reach this gateway. */
  onCallbackMissed(executionId: string): void;
  /** For the audit log. What the playbook refuses, it records itself; too many logins in a minute are counted only. */
  onRefused(refused: RefusedLogin): void;
  /** Where callbacks go. */
  callbackUrl: string;
  /** Longest time for the playbook. */
  loginMs: number;
  sessionMs: number;
  sessionIdleMs: number;
}

/** A login takes some tens of milliseconds: its playbook's progress is read only if it takes longer. */
const WATCH_AFTER_MS = 500;

/**
 * Logs people in: checks the ID token, has the login's playbook enter user and session, and waits for its callback. The callback
 * is only the signal: the server says afterwards whose session it is, so a forged callback gives nothing.
 * Throws `FlowError` RATE_LIMITED, FORBIDDEN, UNAUTHENTICATED, INVALID_LOGIN, TIMEOUT, UNAVAILABLE, SERVER_UNREACHABLE.
 */
export function createLogin(deps: LoginDeps): (request: LoginRequest) => Promise<LoggedIn> {
  return async ({ idpDomain, address, userAgent, ...proof }) => {
    // Unknown domains share one counter: callers can send arbitrary text.
    const name = idpDomain.trim().toLowerCase();
    deps.limit(address ?? "", deps.isDomain(name) ? name : "");
    const noting = async <T>(work: Promise<T>): Promise<T> => {
      try {
        return await work;
      } catch (error) {
        if (error instanceof FlowError && REFUSALS.has(error.code)) {
          deps.onRefused({ idpDomain, address, code: error.code, reason: error.message });
        }
        throw error;
      }
    };
    const idpToken = "code" in proof ? await noting(deps.exchange(idpDomain, proof.code)) : proof.idpToken;
    const identity = await noting(deps.verify(idpDomain, idpToken, "code" in proof ? proof.code.nonce : undefined));
    const sessionToken = newToken();
    const stored = tokenSha256(sessionToken);
    const expected = deps.callbacks.expect(checkUser);
    let ended: EndedWithout | undefined;
    try {
      const input: LoginInput = {
        request_id: expected.requestId,
        gateway_url: deps.callbackUrl,
        email: identity.email,
        display_name: identity.displayName,
        issuer: identity.issuer,
        subject: identity.subject,
        idp_domain: identity.domain,
        token_sha256: stored,
        session_seconds: Math.ceil(deps.sessionMs / 1_000),
        idle_seconds: Math.ceil(deps.sessionIdleMs / 1_000),
        address: address ?? null,
        user_agent: userAgent?.slice(0, USER_AGENT_MAX) ?? null,
      };
      const executionId = await noting(started(deps, input, idpToken));
      expected.bind(executionId);
      ended = await answered(deps, expected, executionId);
    } finally {
      expected.close();
    }
    const session = await deps.sessionOf(stored, address);
    if (session === undefined || session.user.email.toLowerCase() !== identity.email) throw withoutSession(ended);
    if (ended !== undefined) deps.onCallbackMissed(ended.executionId);
    return { sessionToken, ...session };
  };
}

/** Codes that say that this person may not log in, and not that something is broken. */
const REFUSALS: ReadonlySet<string> = new Set(["FORBIDDEN", "UNAUTHENTICATED", "INVALID_LOGIN"]);

const USER_AGENT_MAX = 512;

/**
 * An ID token can be used for one login: the server stores the key, across restarts and for all gateways, and refuses it with
 * another session's body. The key is derived from what the signature covers, because one signature has several valid encodings.
 */
async function started(deps: LoginDeps, input: LoginInput, idpToken: string): Promise<string> {
  const signed = idpToken.slice(0, idpToken.lastIndexOf("."));
  try {
    return await deps.start(input, `login-${tokenSha256(signed)}`);
  } catch (error) {
    if (!(error instanceof FlowError) || error.code !== "CONFLICT") throw error;
    const why = "The ID token was refused: it was used for a login before; get a new one from the provider";
    throw new FlowError("UNAUTHENTICATED", why, { cause: error });
  }
}

/** A playbook that has ended, and no callback came. */
interface EndedWithout {
  executionId: string;
  status: string;
}

/** Waits for the callback, or for the playbook's end where it could not be delivered. */
async function answered(deps: LoginDeps, expected: Expected, executionId: string): Promise<EndedWithout | undefined> {
  const over = new AbortController();
  const { signal } = over;
  const late = deps.sleep(deps.loginMs, signal).then(() => {
    const message = `The login took longer than ${deps.loginMs / 1_000} s (execution ${executionId}); try again`;
    throw new FlowError("TIMEOUT", message);
  });
  const watched = watch(deps, executionId, signal);
  // The promises that lose the race are not awaited.
  for (const other of [late, watched]) other.catch(() => undefined);
  try {
    return await Promise.race([expected.answer.then(refuseFailed), late, watched]);
  } finally {
    over.abort();
  }
}

/** The playbook's end. A server that cannot be asked is asked again: the callback may come all the same. */
async function watch(deps: LoginDeps, executionId: string, signal: AbortSignal): Promise<EndedWithout> {
  for (;;) {
    await deps.sleep(WATCH_AFTER_MS, signal);
    try {
      return { executionId, status: await deps.ended(executionId, signal) };
    } catch {
      signal.throwIfAborted();
    }
  }
}

function withoutSession(ended: EndedWithout | undefined): FlowError {
  const how = ended === undefined ? "" : `, which ended as ${ended.status} (execution ${ended.executionId})`;
  return new FlowError(
    "INVALID_LOGIN",
    `The login did not succeed: no session of this user was made by its playbook${how}`,
  );
}

/** The playbook decided that there is to be no session. */
function refuseFailed({ error, code }: CallbackBody): undefined {
  if (typeof error !== "string" || error === "") return undefined;
  throw new FlowError(code === "FORBIDDEN" ? "FORBIDDEN" : "INVALID_LOGIN", error);
}

/** The exact wording of the specification (Errors). */
function checkUser({ user, error }: CallbackBody): void {
  if (typeof error === "string" && error !== "") return;
  const email = isJsonObject(user) ? own(user, "email") : undefined;
  if (typeof email !== "string" || !email.includes("@")) throw new FlowError("INVALID_LOGIN", "Invalid email");
}
