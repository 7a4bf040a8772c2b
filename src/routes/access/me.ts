import type { MeAnswer } from "../../schema/api/auth.ts";
import { AUTH_ROUTES } from "../../schema/routes/auth.ts";
import { allowedActions, decideUserAccess } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Access, CallingUser } from "../../services/access/access.ts";
import type { SessionChanges } from "../../services/access/session-changes.ts";
import { serve } from "../http/serve.ts";
import { eventStream } from "../streams/sse.ts";

/** What a caller may ask about themselves (Gateway login and sessions). */
export function authRoutes(
  access: Pick<Access, "user">,
  sessionChanges: Pick<SessionChanges, "follow">,
  stopping: AbortSignal,
) {
  return serve(AUTH_ROUTES, {
    me: ({ json }, c) => {
      const { user } = c.var;
      // The answer of a moment ago may be outdated.
      c.header("cache-control", "no-store");
      return json(user === undefined ? tokenOf(c.var.role) : meOf(user));
    },
    can: async ({ body: { action, path, email }, json }, c) => {
      const { user } = c.var;
      const isOther = email !== undefined && email.toLowerCase() !== user?.email.toLowerCase();
      if (isOther && user !== undefined && !user.permissions.includes("manage_users")) {
        throw new FlowError("FORBIDDEN", "What another user may takes the permission manage_users");
      }
      const about = isOther ? await userOf(access, email) : user;
      const decision =
        about === undefined ? { allowed: true, rule: "the operator's token" } : decideUserAccess(about, action, path);
      return json({ ...decision, action, path, email: about?.email ?? null });
    },
    changes: async (_, c) =>
      // A gateway has one. Without it, it would ask for each session anew: it is never refused.
      await eventStream(c, { stopping, places: undefined }, sessionChanges.follow, (change) => ({
        event: "sessions",
        data: change === "all" ? { all: true } : change,
      })),
  });
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
