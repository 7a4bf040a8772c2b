import type { ISql, PendingQuery, Row } from "postgres";

/** A row `p` of `auth.playbook_permissions` as the JSON of a `PlaybookPermission`; `role` is the name of its role. */
export function playbookPermissionJson(sql: ISql, role: PendingQuery<Row[]>) {
  return sql`json_build_object(
    'permissionId', p.playbook_permission_id::text, 'role', ${role}, 'playbookPath', p.playbook_path,
    'allowPattern', p.allow_pattern, 'denyPattern', p.deny_pattern, 'canExecute', p.can_execute,
    'canView', p.can_view, 'canModify', p.can_modify
  )`;
}
