import type { RevokeAnswer, SessionItem } from "../../schema/api/users.ts";
import { LOGIN_SESSION_ROUTES } from "../../schema/routes/users.ts";
import { defined } from "../../schema/words/defined.ts";
import { pageSize } from "../../schema/words/wire.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { LoginSessions } from "../../services/access/login-sessions.ts";
import type { Users } from "../../services/access/users.ts";
import { callerOf } from "../http/audit-caller.ts";
import { serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";
import { actorOf, userOf } from "./users.ts";

/**
 * Login sessions. A user without the permission manage_users can end only their own; for others the answer is the same as for
 * an ended one.
 */
export function loginSessionRoutes(sessions: LoginSessions, users: Pick<Users, "find">, audit: Pick<Audit, "refused">) {
  return serve(LOGIN_SESSION_ROUTES, {
    list: async ({ query: { limit, cursor, user, is_live }, json }) => {
      const filter = {
        ...(user !== undefined && { userId: (await users.find(userOf(user))).userId }),
        ...(is_live !== undefined && { isLive: is_live === "true" }),
      };
      const page = { limit: pageSize(limit), ...defined({ cursor }) };
      const { items, nextCursor } = await sessions.list(filter, page);
      return json({ sessions: items.map(itemOf), next_cursor: nextCursor });
    },
    revoke: async ({ params, json }, c) => {
      const sessionId = Number(pathId(params.session_id, "session"));
      return json(answerOf(await sessions.revoke({ sessionId }, actorOf(c, LOGIN_SESSION_ROUTES.revoke))));
    },
    logout: async ({ body: { token_sha256: tokenSha256 }, json }, c) => {
      return json(answerOf(await sessions.revoke({ tokenSha256 }, actorOf(c, LOGIN_SESSION_ROUTES.logout))));
    },
    refused: async ({ body: { idp_domain, code, reason }, json }, c) => {
      const caller = {
        ...callerOf(c, LOGIN_SESSION_ROUTES.refused),
        actorKind: "anonymous",
        rule: `login:${code}`,
      } as const;
      const detail = { idp_domain: storable(idp_domain), reason: storable(reason) };
      audit.refused(audited(caller, "session.open", "session", { result: "deny", detail }));
      return json({ status: "success" });
    },
    revokeAll: async ({ params, json }, c) => {
      const { userId } = await users.find(userOf(params.user));
      return json(answerOf(await sessions.revoke({ userId }, actorOf(c, LOGIN_SESSION_ROUTES.revokeAll))));
    },
  });
}

/** The database's JSON takes neither U+0000 nor half of a surrogate pair. */
function storable(text: string): string {
  return text.slice(0, REASON_MAX).replace(/\u0000|\p{Surrogate}/gu, "\ufffd");
}

/** Characters that are kept of what a caller sent. */
const REASON_MAX = 300;

function answerOf(revoked: number): RevokeAnswer {
  return { status: "success", revoked };
}

function itemOf(session: Awaited<ReturnType<LoginSessions["list"]>>["items"][number]): SessionItem {
  return {
    session_id: String(session.sessionId),
    user_id: session.userId,
    email: session.email,
    is_live: session.isLive,
    created_at: session.createdAt.toISOString(),
    last_seen_at: session.lastSeenAt.toISOString(),
    idle_expires_at: session.idleExpiresAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    revoked_at: session.revokedAt?.toISOString() ?? null,
    address: session.address,
    user_agent: session.userAgent,
  };
}
