import * as v from "valibot";
import { IdText, NextCursor, storableText, Timestamp } from "../words/wire.ts";
import { CATALOG_PATH_MAX } from "./catalog.ts";
import { RoleName } from "./users.ts";

/* Roles, and what they give. */

/** Longest pattern; each path is matched against it in time in proportion to both lengths. */
const PATTERN_MAX = 1_024;
const Pattern = v.pipe(
  storableText(PATTERN_MAX),
  v.minLength(1),
  v.check(
    (text) => !/[\u0000-\u0009\u000b-\u001f\u007f]/.test(text),
    "must not hold control characters but line breaks",
  ),
  v.description("`*` for anything within a segment, `**` or `%` for anything; several patterns, one in each line."),
);
const CatalogPath = v.pipe(
  storableText(CATALOG_PATH_MAX),
  v.minLength(1),
  v.description("The one path that it is about."),
);

/** What a permission on playbooks says. */
const PlaybookRule = {
  playbook_path: v.exactOptional(v.nullable(CatalogPath)),
  allow_pattern: v.exactOptional(v.nullable(Pattern)),
  deny_pattern: v.exactOptional(
    v.nullable(v.pipe(Pattern, v.description("Paths that this permission, and no other, is not about after all."))),
  ),
  can_execute: v.exactOptional(v.boolean()),
  can_view: v.exactOptional(v.boolean()),
  can_modify: v.exactOptional(v.boolean()),
};

/** Body of `POST /api/auth/roles/{role}/playbooks`. */
export const PlaybookRuleBody = v.pipe(
  v.object(PlaybookRule),
  v.check(
    ({ playbook_path = null, allow_pattern = null }) => playbook_path !== null || allow_pattern !== null,
    "must have playbook_path or allow_pattern",
  ),
  v.check(
    ({ can_execute, can_view, can_modify }) => can_execute === true || can_view === true || can_modify === true,
    "must give can_execute, can_view or can_modify",
  ),
);
export type PlaybookRuleBody = v.InferOutput<typeof PlaybookRuleBody>;

/** A permission of a role on playbooks. */
export const PlaybookRuleItem = v.object({
  permission_id: IdText,
  playbook_path: v.nullable(v.string()),
  allow_pattern: v.nullable(v.string()),
  deny_pattern: v.nullable(v.string()),
  can_execute: v.boolean(),
  can_view: v.boolean(),
  can_modify: v.boolean(),
});
export type PlaybookRuleItem = v.InferOutput<typeof PlaybookRuleItem>;

/** A role. */
export const RoleItem = v.object({
  name: v.string(),
  description: v.nullable(v.string()),
  is_active: v.boolean(),
  created_at: Timestamp,
  permissions: v.array(v.string()),
  playbooks: v.array(PlaybookRuleItem),
});
export type RoleItem = v.InferOutput<typeof RoleItem>;

/** Answer of `GET /api/auth/roles`, by name. */
export const RolesAnswer = v.object({ roles: v.array(RoleItem), next_cursor: NextCursor });
export type RolesAnswer = v.InferOutput<typeof RolesAnswer>;

const change = {
  description: v.exactOptional(v.nullable(storableText(1_000))),
  is_active: v.exactOptional(v.boolean()),
  permissions: v.exactOptional(
    v.pipe(v.array(v.string()), v.maxLength(100), v.description("All global permissions that it has from now on.")),
  ),
};

/** Body of `POST /api/auth/roles`. */
export const RoleBody = v.object({
  name: RoleName,
  ...change,
  playbooks: v.exactOptional(v.pipe(v.array(PlaybookRuleBody), v.maxLength(100))),
});

/** Body of `PUT /api/auth/roles/{role}`: what changes. */
export const RoleChangeBody = v.object(change);
export type RoleChangeBody = v.InferOutput<typeof RoleChangeBody>;

/** Answer of `GET /api/auth/permissions`, by name. */
export const PermissionsAnswer = v.object({
  permissions: v.array(v.object({ name: v.string(), description: v.string() })),
  next_cursor: NextCursor,
});
export type PermissionsAnswer = v.InferOutput<typeof PermissionsAnswer>;
