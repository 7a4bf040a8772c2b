import * as v from "valibot";
import { ACCESS_ACTIONS } from "../rules/access-rules.ts";
import { storableText, Timestamp } from "../words/wire.ts";
import { CATALOG_PATH_MAX } from "./catalog.ts";

/* Who calls, and what they may (Gateway login and sessions). */

/** `user_id` is a number, as specified. */
export const UserId = v.pipe(v.number(), v.integer(), v.minValue(1));

/** An address, as people write it: with one @ and no blanks. Compared whatever the letters' case. */
export const Email = v.pipe(
  storableText(320),
  v.trim(),
  v.regex(/^[^\s@]+@[^\s@]+$/, "must be an address such as name@example.com"),
);

/** A catalog path that is asked about. */
const QueriedPath = v.pipe(storableText(CATALOG_PATH_MAX), v.minLength(1));

/** Answer of `GET /api/auth/me`. */
export const MeAnswer = v.variant("kind", [
  v.object({ kind: v.picklist(["operator", "worker"]) }),
  v.object({
    kind: v.literal("user"),
    user_id: UserId,
    email: v.string(),
    display_name: v.string(),
    roles: v.array(v.string()),
    permissions: v.pipe(v.array(v.string()), v.description("Global permissions of the roles.")),
    actions: v.pipe(
      v.array(v.picklist(ACCESS_ACTIONS)),
      v.description("What they may do with some playbook at least; which, `POST /api/auth/can` says."),
    ),
    expires_at: v.pipe(Timestamp, v.description("When the session ends, whatever happens.")),
  }),
]);
export type MeAnswer = v.InferOutput<typeof MeAnswer>;

/** Body of `POST /api/auth/can`. */
export const CanBody = v.object({
  action: v.picklist(ACCESS_ACTIONS),
  path: v.pipe(QueriedPath, v.description("A catalog path; it need not be registered.")),
  email: v.exactOptional(
    v.pipe(Email, v.description("Of another user, which takes the permission manage_users. Default: the caller.")),
  ),
});

/** Answer of `POST /api/auth/can`. */
export const CanAnswer = v.object({
  allowed: v.boolean(),
  rule: v.pipe(v.string(), v.description("The role and the permission that allow it, or why none does.")),
  action: v.picklist(ACCESS_ACTIONS),
  path: v.string(),
  email: v.nullable(v.string()),
});
export type CanAnswer = v.InferOutput<typeof CanAnswer>;
