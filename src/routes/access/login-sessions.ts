import { Hono } from "hono";
import { RevokeAnswer, RevokeBody, type SessionItem, SessionsAnswer, SessionsQuery } from "../../schema/api/users.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { LoginSessions } from "../../services/access/login-sessions.ts";
import type { Users } from "../../services/access/users.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { jsonBody, pathId, queryOf } from "../http/validate.ts";
import { actorOf, userOf } from "./users.ts";

const LIST = contract({
  method: "get",
  path: "/api/auth/sessions",
  summary: "Sessions, newest first; never what one could use them with",
  access: "operator",
  user: { permission: "manage_users" },
  query: SessionsQuery,
  answer: SessionsAnswer,
  refusals: [404, 422],
});

const REVOKE = contract({
  method: "delete",
  path: "/api/auth/sessions/:session_id",
  summary: "Ends a session, from the next call on; one that has ended is no error",
  access: "operator",
  user: "session",
  answer: RevokeAnswer,
  audit: { action: "session.revoke", resource: "session/:session_id" },
  refusals: [404],
});

const LOGOUT = contract({
  method: "post",
  path: "/api/auth/sessions/revoke",
  summary: "The same by the SHA-256 of the session's token: a logout",
  access: "operator",
  user: "session",
  body: RevokeBody,
  answer: RevokeAnswer,
  audit: { action: "session.revoke", resource: "session" },
  refusals: [413, 422],
});

const REVOKE_ALL = contract({
  method: "delete",
  path: "/api/auth/users/:user/sessions",
  summary: "Ends all sessions of a user",
  access: "operator",
  user: { permission: "manage_users" },
  answer: RevokeAnswer,
  audit: { action: "session.revoke", resource: "user/:user" },
  refusals: [404],
});

/** Contracts of {@link loginSessionRoutes}. */
export const LOGIN_SESSION_CONTRACTS = [LIST, REVOKE, LOGOUT, REVOKE_ALL];

/** Sessions of logins. A user without the permission manage_users ends their own alone; another one counts as ended. */
export function loginSessionRoutes(sessions: LoginSessions, users: Pick<Users, "find">) {
  return new Hono<RouteEnvironment>()
    .get(LIST.path, queryOf(LIST.query), async (c) => {
      const { limit, cursor, user, is_live } = c.req.valid("query");
      const filter = {
        ...(user !== undefined && { userId: (await users.find(userOf(user))).userId }),
        ...(is_live !== undefined && { isLive: is_live === "true" }),
      };
      const page = { limit: pageSize(limit), ...(cursor !== undefined && { cursor }) };
      const { items, nextCursor } = await sessions.list(filter, page);
      return c.json({ sessions: items.map(itemOf), next_cursor: nextCursor } satisfies SessionsAnswer);
    })
    .delete(REVOKE.path, async (c) => {
      const sessionId = Number(pathId(c.req.param("session_id"), "session"));
      return c.json(answerOf(await sessions.revoke({ sessionId }, actorOf(c, REVOKE))));
    })
    .post(LOGOUT.path, jsonBody(LOGOUT.body), async (c) => {
      const { token_sha256: tokenSha256 } = c.req.valid("json");
      return c.json(answerOf(await sessions.revoke({ tokenSha256 }, actorOf(c, LOGOUT))));
    })
    .delete(REVOKE_ALL.path, async (c) => {
      const { userId } = await users.find(userOf(c.req.param("user")));
      return c.json(answerOf(await sessions.revoke({ userId }, actorOf(c, REVOKE_ALL))));
    });
}

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
