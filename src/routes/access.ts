import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import type { Secret } from "../platform/secret.ts";
import { FlowError } from "../schema/errors.ts";
import { type Audit, audited } from "../services/audit.ts";
import { callerOf, resourceOf } from "./caller.ts";
import type { Role, RouteContract } from "./contract.ts";
import { type RouteEnvironment, routeOf } from "./environment.ts";

/** Whose token is what. Without a server token nobody is asked: the server listens on loopback only, or was told to. */
export interface Tokens {
  server: Secret | undefined;
  worker: Secret | undefined;
}

/**
 * Asks who calls and whether the contract of the route lets them. Denies by default: what has no contract, or no route at
 * all, is for operators, so that nobody learns without a token which routes exist. Who is refused a route that is audited
 * stands in the audit log.
 */
export function access(
  contracts: readonly RouteContract[],
  tokens: Tokens,
  audit: Pick<Audit, "refused">,
): MiddlewareHandler<RouteEnvironment> {
  const known = new Map(contracts.map((one) => [`${one.method.toUpperCase()} ${one.path}`, one]));
  const roleOf = authenticator(tokens);
  return async (c, next) => {
    const definition = known.get(routeOf(c) ?? "");
    const least = definition?.access ?? "operator";
    const role = roleOf(c.req.header("authorization"));
    c.set("role", role ?? "anonymous");
    if (RANK[role ?? "anonymous"] < RANK[least]) {
      if (definition?.audit !== undefined) {
        const resource = resourceOf(definition.audit.resource, definition.path, c.req.path);
        audit.refused(audited(callerOf(c, definition), definition.audit.action, resource, { result: "deny" }));
      }
      if (role === undefined) throw unauthenticated(c.req.header("authorization") !== undefined);
      throw forbidden(role, c.req.method, c.req.path);
    }
    await next();
  };
}

const RANK: Readonly<Record<Role, number>> = { anonymous: 0, worker: 1, operator: 2 };

/** Undefined for a caller without a token, or with one that is nobody's. */
function authenticator(tokens: Tokens): (authorization: string | undefined) => Role | undefined {
  if (tokens.server === undefined) return () => "operator";
  const operator = digest(tokens.server.reveal());
  const worker = tokens.worker === undefined ? undefined : digest(tokens.worker.reveal());
  return (authorization) => {
    const token = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    if (token === undefined) return undefined;
    const given = digest(token);
    // Both are compared whatever the first says, digests of one length each: the time tells nothing about a token.
    const isOperator = timingSafeEqual(given, operator);
    const isWorker = worker !== undefined && timingSafeEqual(given, worker);
    if (isOperator) return "operator";
    return isWorker ? "worker" : undefined;
  };
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function unauthenticated(given: boolean): FlowError {
  const why = given ? "The token is not one that this server knows" : "The call has no token";
  return new FlowError("UNAUTHENTICATED", `${why}; send 'Authorization: Bearer <token>'`);
}

function forbidden(role: Role, method: string, path: string): FlowError {
  return new FlowError("FORBIDDEN", `A ${role} may not ${method} ${path}; it takes the operator's token`);
}
