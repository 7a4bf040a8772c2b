import * as v from "valibot";
import { ACCESS_ACTIONS } from "../rules/access-rules.ts";
import { IdInput, storableText } from "../words/wire.ts";

/*
 * What browsers and the gateway say to each other, and what the gateway and the system playbooks do (interface specification,
 * Gateway, and Gateway login and sessions).
 */

/** Body of `POST /api/auth/login`. */
export const LoginBody = v.object({
  idp_token: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(16_384),
    v.description("ID token that the identity provider has given to the browser's application."),
  ),
  idp_domain: v.pipe(v.string(), v.minLength(1), v.maxLength(255), v.description("One of FLOW_IDP_DOMAINS.")),
});
export type LoginBody = v.InferOutput<typeof LoginBody>;

/** What a browser comes back with from its provider (OpenID Connect Core 1.0, section 3.1), and what it had kept. */
export interface AuthorizationCode {
  code: string;
  /** RFC 7636: proof that the caller did more than intercept the code. */
  codeVerifier: string;
  redirectUri: string;
  /** The ID token must have it. */
  nonce: string;
}

/** Body of `POST /api/auth/exchange`: a login with the code of a provider's answer. */
export const ExchangeBody = v.object({
  idp_domain: v.pipe(v.string(), v.minLength(1), v.maxLength(255), v.description("One of FLOW_IDP_DOMAINS.")),
  code: v.pipe(v.string(), v.minLength(1), v.maxLength(4_096)),
  code_verifier: v.pipe(v.string(), v.regex(/^[\w.~-]{43,128}$/, "must be of 43 to 128 unreserved characters")),
  redirect_uri: v.pipe(v.string(), v.maxLength(2_048), v.url(), v.description("Of the page that calls.")),
  nonce: v.pipe(v.string(), v.minLength(16), v.maxLength(255), v.description("The ID token must have it.")),
});

/** Answer of `GET /api/auth/providers`: with whom people log in here. */
export const ProvidersAnswer = v.object({
  providers: v.array(
    v.object({
      domain: v.string(),
      name: v.string(),
      issuer: v.nullable(v.string()),
      client_id: v.nullable(v.string()),
      authorization_endpoint: v.pipe(v.nullable(v.string()), v.description("null: logins with it do not work now.")),
      problem: v.pipe(v.nullable(v.string()), v.description("Why not.")),
    }),
  ),
});
export type ProvidersAnswer = v.InferOutput<typeof ProvidersAnswer>;

/** The logged-in user. */
export const SessionUser = v.object({
  user_id: v.number(),
  email: v.string(),
  display_name: v.string(),
  roles: v.array(v.string()),
});
export type SessionUser = v.InferOutput<typeof SessionUser>;

/** Answer of `POST /api/auth/login`. */
export const LoginAnswer = v.object({
  status: v.literal("authenticated"),
  session_token: v.string(),
  user: SessionUser,
  expires_at: v.pipe(v.string(), v.description("UTC, without a zone.")),
  message: v.string(),
});
export type LoginAnswer = v.InferOutput<typeof LoginAnswer>;

/** Answer of `POST /api/auth/exchange`: the session's token is in the cookie alone, where no script reads it. */
export type ExchangeAnswer = Omit<LoginAnswer, "session_token">;

/** Answer of `GET /api/auth/session`; a session that is not valid is answered with 401. */
export const SessionAnswer = v.object({
  valid: v.literal(true),
  user: SessionUser,
  expires_at: v.nullable(v.string()),
});
export type SessionAnswer = v.InferOutput<typeof SessionAnswer>;

/** Body of `POST /api/auth/access`: may this session's user do this? */
export const AccessBody = v.object({
  action: v.picklist(ACCESS_ACTIONS),
  path: v.pipe(storableText(512), v.minLength(1)),
});

/** Answer of `POST /api/auth/access`. */
export const AccessAnswer = v.object({ allowed: v.boolean() });
export type AccessAnswer = v.InferOutput<typeof AccessAnswer>;

/** Workload that the gateway starts `api_integration/<idp>/login` with. No token is in it: events keep it. */
export interface LoginInput {
  /** Comes back in the callback: 256 random bits, good for one. */
  request_id: string;
  /** Where the callback goes: this address and `/api/internal/callback`. */
  gateway_url: string;
  /** The claims of the ID token, which the gateway has verified. */
  email: string;
  display_name: string;
  issuer: string;
  subject: string;
  idp_domain: string;
  /** SHA-256 of the session's token, hex: it is stored, the token is not. */
  token_sha256: string;
  /** How long the session lasts, and how long without being used. */
  session_seconds: number;
  idle_seconds: number;
  address: string | null;
  user_agent: string | null;
}

/**
 * Body of the callback routes: the findings of a system playbook. `execution_id` must be that of the execution which got the
 * `request_id`. With `error` the request has failed: `code` is FORBIDDEN for a user who may not log in.
 */
export const CallbackBody = v.looseObject({
  request_id: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
  execution_id: IdInput,
  status: v.optional(v.nullable(v.string())),
  error: v.optional(v.nullable(v.string())),
  code: v.optional(v.nullable(v.string())),
  user: v.optional(v.unknown()),
});
export type CallbackBody = v.InferOutput<typeof CallbackBody>;

/** Sessions that are not what they were (`GET /api/auth/changes`): those of these tokens (SHA-256), or perhaps all. */
export const SessionsChanged = v.object({ tokens: v.optional(v.array(v.string())) });
/** The same, read. */
export type ChangedSessions = readonly string[] | "all";

/** A session that is valid. */
export interface KnownSession {
  user: SessionUser;
  /** When it ends in any case, milliseconds since 1970. */
  expiresAt: number;
}

/** An entry of a gateway's cache: what the server said, and when it was asked. */
export interface SessionEntry extends KnownSession {
  /** Milliseconds since 1970. */
  askedAt: number;
}

const Entry = v.object({ user: SessionUser, expires_at: v.number(), asked_at: v.number() });

/** The entry as JSON, for the broker's store. */
export function encodeSession({ user, expiresAt, askedAt }: SessionEntry): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ user, expires_at: expiresAt, asked_at: askedAt }));
}

/** The reverse; undefined for a value from another program or version. */
export function decodeSession(bytes: Uint8Array): SessionEntry | undefined {
  const entry = v.safeParse(Entry, parsed(new TextDecoder().decode(bytes)));
  if (!entry.success) return undefined;
  const { user, expires_at: expiresAt, asked_at: askedAt } = entry.output;
  return { user, expiresAt, askedAt };
}

/** The sessions in an event of `GET /api/auth/changes`. An event that is not understood may concern every session. */
export function changedSessions(text: string): ChangedSessions {
  const change = v.safeParse(SessionsChanged, parsed(text));
  return (change.success ? change.output.tokens : undefined) ?? "all";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
