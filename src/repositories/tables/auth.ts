import { sql } from "drizzle-orm";
import { bigint, boolean, check, foreignKey, index, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import { auth, createdAt, instant, updatedAt } from "./columns.ts";

/**
 * Users and their permissions (interface specification, Gateway login and sessions). A login creates its user; permissions come
 * from roles alone.
 */

/** A number that the database gives. A JavaScript number: the specification has `user_id` as one. */
const identity = (column: string) => bigint(column, { mode: "number" }).primaryKey().generatedAlwaysAsIdentity();
const userReference = (column: string) => bigint(column, { mode: "number" });

/** People who have logged in once, or were entered by an administrator. */
export const users = auth.table(
  "users",
  {
    userId: identity("user_id"),
    email: text("email").notNull(),
    displayName: text("display_name").notNull(),
    /** The identity provider that may vouch for this user; null before the first login if any may. */
    issuer: text("issuer"),
    /** The user's name there: null before the first login. */
    subject: text("subject"),
    isActive: boolean("is_active").notNull().default(true),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    lastLoginAt: instant("last_login_at"),
  },
  (table) => [
    uniqueIndex("users_email").on(sql`lower(${table.email})`),
    uniqueIndex("users_subject").on(table.issuer, table.subject),
    check("users_email_given", sql`email LIKE '_%@_%'`),
    check("users_subject_whole", sql`issuer IS NOT NULL OR subject IS NULL`),
  ],
);

/** Sessions by the SHA-256 of their token: a reader of this table can use none of them. */
export const sessions = auth.table(
  "sessions",
  {
    sessionId: identity("session_id"),
    tokenSha256: text("token_sha256").notNull(),
    userId: userReference("user_id")
      .notNull()
      .references(() => users.userId, { onDelete: "cascade" }),
    createdAt: createdAt(),
    lastSeenAt: instant("last_seen_at").notNull().defaultNow(),
    /** When it ends if it is not used until then; moved on with use. */
    idleExpiresAt: instant("idle_expires_at").notNull(),
    /** When it ends in any case. */
    expiresAt: instant("expires_at").notNull(),
    revokedAt: instant("revoked_at"),
    address: text("address"),
    userAgent: text("user_agent"),
  },
  (table) => [
    uniqueIndex("sessions_token").on(table.tokenSha256),
    // All sessions of a user, to end them; and what is deleted when its time is over.
    index("sessions_for_user").on(table.userId),
    index("sessions_for_expiry").on(table.expiresAt),
    check("sessions_token_sha256", sql`token_sha256 ~ '^[0-9a-f]{64}$'`),
  ],
);

/** `admin`, `developer`, `analyst`, `viewer`, and what administrators add. */
export const roles = auth.table(
  "roles",
  {
    roleId: identity("role_id"),
    name: text("name").notNull().unique("roles_name"),
    description: text("description"),
    isActive: boolean("is_active").notNull().default(true),
    createdAt: createdAt(),
  },
  () => [check("roles_name_form", sql`name ~ '^[a-z][a-z0-9_-]{0,63}$'`)],
);

/** Global permissions: `manage_users`, `view_audit`, …. */
export const permissions = auth.table("permissions", {
  permissionId: identity("permission_id"),
  name: text("name").notNull().unique("permissions_name"),
  description: text("description").notNull(),
});

/** The global permissions of a role. */
export const rolePermissions = auth.table(
  "role_permissions",
  {
    roleId: userReference("role_id")
      .notNull()
      .references(() => roles.roleId, { onDelete: "cascade" }),
    permissionId: userReference("permission_id")
      .notNull()
      .references(() => permissions.permissionId, { onDelete: "cascade" }),
  },
  (table) => [primaryKey({ name: "role_permissions_pkey", columns: [table.roleId, table.permissionId] })],
);

/** Roles of users, and who granted them. */
export const userRoles = auth.table(
  "user_roles",
  {
    userId: userReference("user_id")
      .notNull()
      .references(() => users.userId, { onDelete: "cascade" }),
    roleId: userReference("role_id")
      .notNull()
      .references(() => roles.roleId, { onDelete: "cascade" }),
    /** The administrator; null for a grant of the installation itself. */
    grantedBy: userReference("granted_by"),
    grantedAt: instant("granted_at").notNull().defaultNow(),
    isActive: boolean("is_active").notNull().default(true),
  },
  (table) => [
    primaryKey({ name: "user_roles_pkey", columns: [table.userId, table.roleId] }),
    foreignKey({ name: "user_roles_granted_by", columns: [table.grantedBy], foreignColumns: [users.userId] }).onDelete(
      "set null",
    ),
    index("user_roles_for_role").on(table.roleId),
  ],
);

/** The permissions of a role on playbooks; see `schema/rules/access-rules`. */
export const playbookPermissions = auth.table(
  "playbook_permissions",
  {
    playbookPermissionId: identity("playbook_permission_id"),
    roleId: userReference("role_id")
      .notNull()
      .references(() => roles.roleId, { onDelete: "cascade" }),
    playbookPath: text("playbook_path"),
    allowPattern: text("allow_pattern"),
    denyPattern: text("deny_pattern"),
    canExecute: boolean("can_execute").notNull().default(false),
    canView: boolean("can_view").notNull().default(false),
    canModify: boolean("can_modify").notNull().default(false),
    createdAt: createdAt(),
  },
  (table) => [
    index("playbook_permissions_for_role").on(table.roleId),
    check("playbook_permissions_about", sql`playbook_path IS NOT NULL OR allow_pattern IS NOT NULL`),
  ],
);
