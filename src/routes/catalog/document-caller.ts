import type { Context } from "hono";
import { pathRules } from "../../schema/rules/access-rules.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { DocumentCaller } from "../../services/catalog/documents.ts";
import type { RouteEnvironment } from "../http/request-context.ts";

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
