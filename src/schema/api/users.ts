import * as v from "valibot";
import { IdText, isStorable, NextCursor, PageQuery, storableText, Timestamp } from "../words/wire.ts";
import { Email, UserId } from "./auth.ts";

/** Users and their sessions, for users who may manage them. */

const Flag = v.picklist(["true", "false"]);
const DisplayName = v.pipe(storableText(200), v.trim(), v.minLength(1));

/** Name of a role. */
export const RoleName = v.pipe(
  v.string(),
  v.regex(/^[a-z][a-z0-9_-]{0,63}$/, "must be of small letters, digits, _ and -, beginning with a letter"),
);

/** A user. */
export const UserItem = v.object({
  user_id: UserId,
  email: v.string(),
  display_name: v.string(),
  is_active: v.boolean(),
  issuer: v.nullable(
    v.pipe(
      v.string(),
      v.description(
        "Who vouches for them, or alone may; null: the first provider that does, as they have not logged in.",
      ),
    ),
  ),
  created_at: Timestamp,
  last_login_at: v.nullable(Timestamp),
  roles: v.array(
    v.object({
      role: v.string(),
      is_active: v.boolean(),
      granted_by: v.nullable(v.string()),
      granted_at: Timestamp,
    }),
  ),
});
export type UserItem = v.InferOutput<typeof UserItem>;

/** Query of `GET /api/auth/users`. */
export const UsersQuery = v.object({
  ...PageQuery.entries,
  q: v.exactOptional(v.pipe(storableText(200), v.description("A part of the address or the name."))),
  is_active: v.exactOptional(Flag),
  role: v.exactOptional(v.pipe(RoleName, v.description("Only users with this role."))),
});

/** Answer of `GET /api/auth/users`. */
export const UsersAnswer = v.object({ users: v.array(UserItem), next_cursor: NextCursor });
export type UsersAnswer = v.InferOutput<typeof UsersAnswer>;

/** Body of `POST /api/auth/users`. */
export const UserBody = v.object({
  email: Email,
  display_name: v.exactOptional(v.pipe(DisplayName, v.description("Default: the address."))),
  roles: v.exactOptional(v.pipe(v.array(RoleName), v.maxLength(100))),
  issuer: v.exactOptional(
    v.pipe(
      storableText(500),
      v.url("must be the address of the identity provider"),
      v.description("The identity provider that alone may vouch for the address. Default: the service's only one."),
    ),
  ),
  any_issuer: v.exactOptional(
    v.pipe(
      v.boolean(),
      v.description(
        "The first provider that vouches for the address gets the user, whichever it is. Excludes `issuer`.",
      ),
    ),
  ),
});

/** Body of `PUT /api/auth/users/{user}`: what changes. */
export const UserChangeBody = v.object({
  email: v.exactOptional(Email),
  display_name: v.exactOptional(DisplayName),
  is_active: v.exactOptional(
    v.pipe(v.boolean(), v.description("Who is deactivated loses their sessions, and cannot log in.")),
  ),
});

/** Answer to a deletion, and to ending sessions. */
export const DoneAnswer = v.object({ status: v.literal("success") });

/** A user in an address: their id, or their e-mail address. */
export const UserInAddress = v.union([
  v.pipe(
    v.string(),
    v.regex(/^[1-9]\d{0,15}$/),
    v.transform((text) => ({ userId: Number(text) })),
  ),
  v.pipe(
    v.string(),
    v.check((text) => text.includes("@") && isStorable(text) && text.length <= 320),
    v.transform((email) => ({ email })),
  ),
]);

/** A session, without anything that it could be used with. */
export const SessionItem = v.object({
  session_id: IdText,
  user_id: UserId,
  email: v.string(),
  is_live: v.pipe(v.boolean(), v.description("Neither revoked nor expired, of an active user.")),
  created_at: Timestamp,
  last_seen_at: Timestamp,
  idle_expires_at: Timestamp,
  expires_at: Timestamp,
  revoked_at: v.nullable(Timestamp),
  address: v.nullable(v.string()),
  user_agent: v.nullable(v.string()),
});
export type SessionItem = v.InferOutput<typeof SessionItem>;

/** Query of `GET /api/auth/sessions`. */
export const SessionsQuery = v.object({
  ...PageQuery.entries,
  user: v.exactOptional(v.pipe(storableText(320), v.description("Id or address of a user."))),
  is_live: v.exactOptional(Flag),
});

/** Answer of `GET /api/auth/sessions`, newest first. */
export const SessionsAnswer = v.object({ sessions: v.array(SessionItem), next_cursor: NextCursor });
export type SessionsAnswer = v.InferOutput<typeof SessionsAnswer>;

/** Body of `POST /api/auth/sessions/revoke`. */
export const RevokeBody = v.object({
  token_sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in hex")),
});

/** Body of `POST /api/auth/sessions/refused`: a login that a gateway has refused. */
export const RefusedLoginBody = v.object({
  idp_domain: v.pipe(v.string(), v.maxLength(1_000), v.description("The provider that the caller named.")),
  code: v.pipe(v.string(), v.maxLength(100)),
  reason: v.pipe(v.string(), v.maxLength(2_000), v.description("What the caller was told.")),
});

/** Answer to ending sessions. */
export const RevokeAnswer = v.object({
  status: v.literal("success"),
  revoked: v.pipe(v.number(), v.description("Sessions that were not revoked before.")),
});
export type RevokeAnswer = v.InferOutput<typeof RevokeAnswer>;
