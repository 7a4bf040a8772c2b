import { createHash, timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import type { Context, MiddlewareHandler } from "hono";
import type { ClaimSecrets } from "../../platform/crypto/claim-secrets.ts";
import type { Secret } from "../../platform/crypto/secret.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import type { RouteContract, TokenRole } from "../../schema/routes/contract.ts";
import { claimRequired, notOfClaim } from "../../schema/rules/claim-refusals.ts";
import { servesPath } from "../../schema/rules/pool-label.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Access } from "../../services/access/access.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { SessionChanges } from "../../services/access/session-changes.ts";
import type { Pools } from "../../services/workers/pools.ts";
import type { PresentClaims } from "../../services/workers/present-claims.ts";
import { callerOf, resourceOf } from "./audit-caller.ts";
import { admitUser } from "./authorize-user.ts";
import { createDecisions, type DecisionLog } from "./decisions.ts";
import { parametersOf, type RouteEnvironment, routeOf } from "./request-context.ts";
import { pathId } from "./validate.ts";
import type { WrongTokens } from "./wrong-tokens.ts";

/** Whose token is what. Without a server token there is no authentication: the server listens on loopback only, or was configured so. */
export interface Tokens {
  server: Secret | undefined;
  worker: Secret | undefined;
}

/** What {@link access} needs. */
export interface AccessParts {
  tokens: Tokens;
  access: Pick<Access, "session" | "pathOf">;
  sessionChanges: Pick<SessionChanges, "version">;
  audit: DecisionLog & Pick<Audit, "unauthenticated">;
  presentClaims: PresentClaims;
  pools: Pick<Pools, "ofToken">;
  wrongTokens: WrongTokens;
}

/**
 * Asks who calls and whether the contract of the route lets them. Denies by default: what has no contract, or no route at
 * all, is for operators, so that callers without a token cannot learn which routes exist. Refused calls of
 * audited routes are recorded in the audit log.
 *
 * A gateway calls with the operator's token and says whose session it is (`x-flow-session`, the SHA-256 of the session's token
 * in hex): then the caller is that user and nothing more, decided anew with each call.
 */
export function access(contracts: readonly RouteContract[], parts: AccessParts): MiddlewareHandler<RouteEnvironment> {
  const known = new Map(contracts.map((one) => [`${one.method.toUpperCase()} ${one.path}`, one]));
  const roleOf = authenticator(parts.tokens);
  return async (c, next) => {
    const definition = known.get(routeOf(c) ?? "");
    const least = definition?.access ?? "operator";
    const authorization = c.req.header("authorization");
    const ownPool = c.env?.ownPool;
    const given = ownPool === undefined ? roleOf(authorization) : undefined;
    const pool =
      ownPool ?? (given === undefined ? await parts.pools.ofToken(bearerOf(authorization) ?? "") : undefined);
    if (pool !== undefined) c.set("pool", pool);
    const role = pool === undefined ? given : "worker";
    c.set("role", role ?? "anonymous");
    c.set("decisions", createDecisions(parts.audit));
    if (role === "operator") c.set("address", addressOf(c));
    const session = c.req.header("x-flow-session");
    if (session !== undefined && role !== undefined && least !== "anonymous") {
      const settled = await admitSession(c, session, definition, parts);
      await next();
      // Errors of handlers do not come through here: they are answers by now.
      if (c.error === undefined) settled();
      await endDecisions(c, () => callEntry(c, definition));
      return;
    }
    if (RANK[role ?? "anonymous"] < RANK[least]) {
      if (role === undefined) throw await unauthenticated(c, definition, parts);
      c.get("decisions").refused({ ...callEntry(c, definition), result: "deny" });
      throw forbidden(role, c.req.method, c.req.path);
    }
    // What shows the whole installation is not for the workers of one pool; the handlers of the catalog look at the path.
    if (
      pool !== undefined &&
      definition?.claim === undefined &&
      definition?.user !== undefined &&
      !isCatalogRead(definition)
    ) {
      c.get("decisions").refused({ ...callEntry(c, definition), result: "deny" });
      throw new FlowError("FORBIDDEN", `Workers of a pool may not ${c.req.method} ${c.req.path}`);
    }
    if (role !== undefined) admitToken(c, role);
    if (role === "worker" && definition?.claim !== undefined) await admitClaim(c, definition, parts);
    await next();
    if (c.error !== undefined || c.get("decisions").open.length > 0)
      await endDecisions(c, () => callEntry(c, definition));
  };
}

/** What a worker reads of the catalog to run a command: its playbook, and the MCP servers that it names. */
function isCatalogRead({ path }: RouteContract): boolean {
  return path === CATALOG_ROUTES.entry.path || path === CATALOG_ROUTES.resource.path;
}

/** A worker's call in the name of a command: its token says no more than that it is a worker. */
async function admitClaim(c: Context<RouteEnvironment>, definition: RouteContract, parts: AccessParts): Promise<void> {
  const { claim: needs } = definition;
  if (needs === undefined) return;
  const about = needs === "asked" ? undefined : pathId(parametersOf(c)["execution_id"] ?? "", "execution");
  try {
    const claim = await parts.presentClaims.admit(c.req.header(CLAIM_HEADER), needs, about);
    checkPoolPath(c, claim.path, () => notOfClaim(claim, `the token of pool '${c.get("pool")?.name ?? ""}'`));
    c.set("claim", claim);
  } catch (error) {
    await c.get("decisions").failed(error, () => callEntry(c, definition));
    throw error;
  }
}

/** Header with the secret of the claim in whose name a worker calls. */
export const CLAIM_HEADER = "x-flow-claim";
/** Header with the secret that a worker was given when it registered. */
export const WORKER_HEADER = "x-flow-worker";

/**
 * The process that a worker's call comes from, by the secret of its registration. Undefined for callers who need none: operators.
 * Throws `FlowError` claim_required without the secret of a process that registered under this name.
 */
export function provenInstance(
  c: Context<RouteEnvironment>,
  secrets: Pick<ClaimSecrets, "instanceOf">,
  name: string,
): string | undefined {
  if (c.get("role") !== "worker") return undefined;
  const secret = c.req.header(WORKER_HEADER);
  const instance = secret === undefined ? undefined : secrets.instanceOf(secret, name);
  if (instance !== undefined) return instance;
  const why =
    secret === undefined ? "is missing; a worker of an older version does not send it: upgrade it" : "is not its";
  const message = `The secret of worker '${name}' (worker_secret of its registration, sent as x-flow-worker) ${why}`;
  throw claimRequired(secret === undefined ? "missing" : "unknown", message);
}

/** Throws the refusal to a worker of a pool that does not run playbooks of this path. */
export function checkPoolPath(c: Context<RouteEnvironment>, path: string, refusal: () => FlowError): void {
  const pool = c.get("pool");
  if (pool !== undefined && !servesPath(pool.paths, path)) throw refusal();
}

const RANK: Readonly<Record<TokenRole, number>> = { anonymous: 0, worker: 1, operator: 2 };

async function admitSession(
  c: Context<RouteEnvironment>,
  tokenSha256: string,
  definition: RouteContract | undefined,
  parts: AccessParts,
): Promise<() => void> {
  // A gateway with the wrong token: its users must not become workers, who read secrets.
  if (c.get("role") !== "operator") {
    c.get("decisions").refused({ ...callEntry(c, definition), rule: "x-flow-session", result: "deny" });
    throw new FlowError("FORBIDDEN", SESSION_OF_OTHERS);
  }
  c.set("role", "user");
  const admit = async () => {
    const user = /^[0-9a-f]{64}$/.test(tokenSha256) ? await parts.access.session(tokenSha256) : undefined;
    if (user === undefined) {
      noteUnknown(c, definition, parts, "no such session");
      throw new FlowError("UNAUTHENTICATED", SESSION_OVER);
    }
    c.set("user", user);
    return await admitUser(c, user, definition, parts);
  };
  const { version } = parts.sessionChanges;
  c.set("recheck", {
    version,
    since: version(),
    again: async () => {
      await admit();
      await c.get("decisions").settle();
    },
  });
  return await admit();
}

const SESSION_OF_OTHERS = "A session (x-flow-session) is believed with the operator's token alone";
const SESSION_OVER = "There is no such session: it has ended, was revoked, or its user is not active. Log in again";

/** The client's address as a gateway reports it; undefined when it is no address. */
function addressOf(c: Context<RouteEnvironment>): string | undefined {
  const address = c.req.header("x-flow-address");
  return address !== undefined && isIP(address) !== 0 ? address : undefined;
}

/** Undefined for a caller without a token, or with an unknown one. */
function authenticator(tokens: Tokens): (authorization: string | undefined) => TokenRole | undefined {
  if (tokens.server === undefined) return () => "operator";
  const operator = tokenDigest(tokens.server.reveal());
  const worker = tokens.worker === undefined ? undefined : tokenDigest(tokens.worker.reveal());
  return (authorization) => {
    const token = bearerOf(authorization);
    if (token === undefined) return undefined;
    const given = tokenDigest(token);
    // Both are compared whatever the result of the first, as digests of one length: the time reveals nothing about a token.
    const isOperator = timingSafeEqual(given, operator);
    const isWorker = worker !== undefined && timingSafeEqual(given, worker);
    if (isOperator) return "operator";
    return isWorker ? "worker" : undefined;
  };
}

/** Writes what the handler has left: the decisions of a call that has been answered, or has failed. */
async function endDecisions(c: Context<RouteEnvironment>, otherwise: () => AuditEntry): Promise<void> {
  const decisions = c.get("decisions");
  if (c.error === undefined) await decisions.settle();
  else await decisions.failed(c.error, otherwise);
}

/** Calls of operators and workers: what starts or registers something is in the log. */
function admitToken(c: Context<RouteEnvironment>, role: TokenRole): void {
  c.set("permit", (action, path) => {
    const entry = audited(callerOf(c, { access: role }), `playbook.${action}`, `playbook/${path}`);
    // A worker starts the calls of a playbook, as many as there are items: the same within a minute are one row.
    if (action !== "view") c.get("decisions").allowed(entry, role === "worker");
    return Promise.resolve();
  });
}

/** The call itself, where nothing more is known about it. */
function callEntry(c: Context<RouteEnvironment>, definition: RouteContract | undefined): AuditEntry {
  const caller = callerOf(c, definition ?? { access: "operator" });
  if (definition?.audit === undefined) return audited(caller, "route.call", c.req.path);
  const { action, resource } = definition.audit;
  return audited(caller, action, resourceOf(resource, definition.path, c.req.path));
}

function noteUnknown(
  c: Context<RouteEnvironment>,
  definition: RouteContract | undefined,
  { audit }: AccessParts,
  rule: string,
): void {
  const { action, resource } = callEntry(c, definition);
  const caller = { ...callerOf(c, { access: "operator" }), actorKind: "anonymous", rule } as const;
  audit.unauthenticated(audited(caller, "authenticate", resource, { result: "deny", detail: { first: action } }));
}

async function unauthenticated(
  c: Context<RouteEnvironment>,
  definition: RouteContract | undefined,
  parts: AccessParts,
): Promise<FlowError> {
  const given = c.req.header("authorization") !== undefined;
  noteUnknown(c, definition, parts, given ? "unknown token" : "no token");
  if (given) await parts.wrongTokens.hold(c);
  const why = given ? "The token is not one that this server knows" : "The call has no token";
  return new FlowError("UNAUTHENTICATED", `${why}; send 'Authorization: Bearer <token>'`);
}

function forbidden(role: TokenRole, method: string, path: string): FlowError {
  return new FlowError("FORBIDDEN", `A ${role} may not ${method} ${path}; it takes the operator's token`);
}

/** The token of an `Authorization` header (RFC 6750, section 2.1); undefined without one, or where it brings something else. */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
}

/** Whether a token is the expected one, in constant time. */
export function tokenMatcher(expected: Secret): (given: string) => boolean {
  const wanted = tokenDigest(expected.reveal());
  return (given) => timingSafeEqual(tokenDigest(given), wanted);
}

/** What is compared instead of a token: of one length whatever was given. */
export function tokenDigest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
