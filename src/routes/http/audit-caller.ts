import type { Context } from "hono";
import type { RouteContract } from "../../schema/routes/contract.ts";
import { pathRules } from "../../schema/rules/access-rules.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { CallingUser } from "../../services/access/access.ts";
import type { Caller } from "../../services/access/audit.ts";
import type { DocumentCaller } from "../../services/catalog/documents.ts";
import type { PresentClaim } from "../../services/workers/present-claims.ts";
import { peerOf, type RouteEnvironment } from "./request-context.ts";

/** The caller for the audit log: the rule of the route that admitted them, and their address. */
export function callerOf(c: Context<RouteEnvironment>, { access }: Pick<RouteContract, "access">): Caller {
  const address = c.get("address") ?? peerOf(c);
  const user = c.get("user");
  const claim = c.get("claim");
  return {
    actorKind: c.get("role"),
    rule: c.get("rule") ?? `access:${access}`,
    requestId: c.get("requestId"),
    ...(user !== undefined && { actor: user.email, userId: String(user.userId), ...identityOf(user) }),
    ...(claim !== undefined && claimOf(claim)),
    ...defined({ address }),
  };
}

/** The claim whose secret a worker's call came with. */
function claimOf({ worker, executionId, commandId, attempt }: PresentClaim): Partial<Caller> {
  return { executionId, commandId, attempt, ...(worker !== null && { actor: worker }) };
}

/** Whom the identity provider vouched for: not for a user who was only entered. */
function identityOf({ issuer, subject }: CallingUser): Pick<Caller, "issuer" | "subject"> {
  return issuer === null || subject === null ? {} : { issuer, subject };
}

/** The resource of a route that is audited, as `credential/pg_demo`: its pattern, filled from the address. */
export function resourceOf(pattern: string, route: string, address: string): string {
  const names = route.split("/");
  const texts = address.split("/");
  return pattern.replaceAll(/:(\w+)/g, (_, name: string) => {
    const rest = names.indexOf(`:${name}{.+}`);
    return decoded(rest < 0 ? (texts[names.indexOf(`:${name}`)] ?? "") : texts.slice(rest).join("/"));
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Longest document of a user who may register nothing: all they can do is have it read. */
const UNREGISTERED_MAX = 64 * 1024;

/** Who wants a document read. Throws `FlowError` TOO_LARGE for one that this caller can have no use for. */
export function documentCaller(c: Context<RouteEnvironment>, content: string): DocumentCaller {
  const { user, role } = c.var;
  const mayRegister = user === undefined || pathRules(user.playbooks, "modify")?.length !== 0;
  if (!mayRegister && content.length > UNREGISTERED_MAX) {
    const most = UNREGISTERED_MAX.toLocaleString("en");
    const message = `The document was not read: it has ${content.length.toLocaleString("en")} characters, and users who may register nothing can have ${most} read`;
    throw new FlowError("TOO_LARGE", `${message}. Ask an administrator for a role that allows to modify a playbook`);
  }
  // Workers have no name here: all of them are one caller.
  const name = user === undefined ? (role === "worker" ? "workers" : undefined) : `user ${user.userId}`;
  return { signal: c.req.raw.signal, ...defined({ user: name }) };
}
