import { Hono } from "hono";
import { CanAnswer, CanBody, MeAnswer } from "../../schema/api/auth.ts";
import { allowedActions, decideAccess } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Access, CallingUser } from "../../services/access/access.ts";
import type { SessionChanges } from "../../services/access/session-changes.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { eventStream } from "../http/sse.ts";
import { jsonBody } from "../http/validate.ts";

const ME = contract({
  method: "get",
  path: "/api/auth/me",
  summary: "Who calls: the user of the session with what their roles give, or what the token is",
  access: "worker",
  user: "session",
  answer: MeAnswer,
});

const CAN = contract({
  method: "post",
  path: "/api/auth/can",
  summary: "Whether a user may do something with a catalog path, and which rule says so",
  access: "operator",
  user: "session",
  body: CanBody,
  answer: CanAnswer,
  refusals: [404, 413, 422],
});

const CHANGES = contract({
  method: "get",
  path: "/api/auth/changes",
  summary:
    "Server-sent events `sessions`: whose sessions are not what they were, as `tokens` (SHA-256) or `all`; for whoever remembers them",
  access: "operator",
  contentType: "text/event-stream",
  refusals: [503],
});

/** Contracts of {@link authRoutes}. */
export const AUTH_CONTRACTS = [ME, CAN, CHANGES];

/** What a caller may ask about themselves (Gateway login and sessions). */
export function authRoutes(
  access: Pick<Access, "user">,
  sessionChanges: Pick<SessionChanges, "follow">,
  stopping: AbortSignal,
) {
  return new Hono<RouteEnvironment>()
    .get(ME.path, (c) => {
      const { user } = c.var;
      // What was asked a moment ago may be otherwise now.
      c.header("cache-control", "no-store");
      return c.json(user === undefined ? tokenOf(c.var.role) : meOf(user));
    })
    .post(CAN.path, jsonBody(CAN.body), async (c) => {
      const { action, path, email } = c.req.valid("json");
      const { user } = c.var;
      const isOther = email !== undefined && email.toLowerCase() !== user?.email.toLowerCase();
      if (isOther && user !== undefined && !user.permissions.includes("manage_users")) {
        throw new FlowError("FORBIDDEN", "What another user may takes the permission manage_users");
      }
      const about = isOther ? await userOf(access, email) : user;
      const decision =
        about === undefined
          ? { allowed: true, rule: "the operator's token" }
          : decideAccess(about.playbooks, action, path);
      return c.json({ ...decision, action, path, email: about?.email ?? null } satisfies CanAnswer);
    })
    .get(
      CHANGES.path,
      async (c) =>
        await eventStream(c, stopping, sessionChanges.follow, (change) => ({
          event: "sessions",
          data: change === "all" ? { all: true } : change,
        })),
    );
}

async function userOf(access: Pick<Access, "user">, email: string) {
  const user = await access.user({ email });
  if (user === undefined) throw new FlowError("NOT_FOUND", `There is no active user ${email}`);
  return user;
}

function meOf(user: CallingUser): MeAnswer {
  return {
    kind: "user",
    user_id: user.userId,
    email: user.email,
    display_name: user.displayName,
    roles: user.roles,
    permissions: user.permissions,
    actions: allowedActions(user.playbooks),
    expires_at: user.expiresAt.toISOString(),
  };
}

function tokenOf(role: string): MeAnswer {
  return { kind: role === "worker" ? "worker" : "operator" };
}
