/**
 * Permissions on playbooks (interface specification, Gateway login and sessions, rule 4): rows of roles, and one decision over
 * them.
 */

/** What a user wants to do: start, cancel and run again; see; register and delete. */
export const ACCESS_ACTIONS = ["execute", "view", "modify"] as const;
export type AccessAction = (typeof ACCESS_ACTIONS)[number];

/** Global permissions, which are not about playbooks; rows of `auth.permissions`. The server asks for no other. */
export const PERMISSIONS = [
  "manage_users",
  "manage_roles",
  "view_audit",
  "manage_credentials",
  "view_operations",
] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** Which paths a row is about. */
export interface PathRow {
  /** The one path that it is about. */
  playbookPath: string | null;
  /** Paths that it is about, see {@link matchesPattern}. */
  allowPattern: string | null;
  /** Paths that it is not about after all. It binds this row alone. */
  denyPattern: string | null;
}

/** What a row gives on these paths. */
export interface ActionFlags {
  canExecute: boolean;
  canView: boolean;
  canModify: boolean;
}

/** What one row gives a role. */
export interface PlaybookPermission extends PathRow, ActionFlags {
  permissionId: string;
  role: string;
}

/** A decision and its reason, for the audit log and for `flow can`. */
export interface AccessDecision {
  allowed: boolean;
  /** The role and the row that allow it, or why nothing does. */
  rule: string;
}

/** Allowed when one row is about the path and gives the action; no row allows by default. */
export function decideAccess(
  permissions: readonly PlaybookPermission[],
  action: AccessAction,
  path: string,
): AccessDecision {
  const about = permissions.filter((row) => isAbout(row, path));
  const giving = about.find((row) => gives(row, action));
  if (giving !== undefined) return { allowed: true, rule: `role ${giving.role}, permission ${giving.permissionId}` };
  const denied = permissions.some((row) => gives(row, action) && names(row, path));
  if (denied) return { allowed: false, rule: `no role: ${path} is among the paths that deny_pattern takes out` };
  const why = about.length > 0 ? `what allows ${path} does not allow to ${action} it` : `nothing allows ${path}`;
  return { allowed: false, rule: `no role: ${why}` };
}

/** Folders of playbooks that administer the service itself: logins, users, roles. */
export const SYSTEM_FOLDERS: readonly string[] = ["api_integration/", "system/"];

/** One of these lets a user execute or change system playbooks. */
const SYSTEM_PERMISSIONS: readonly Permission[] = ["manage_users", "manage_roles"];

/** Whether the playbook at this path administers the service itself. */
export function isSystemPath(path: string): boolean {
  return SYSTEM_FOLDERS.some((folder) => path.startsWith(folder));
}

/**
 * Why one playbook may not call another, as a sentence; undefined if it may. A system playbook acts with the rights of the service, and is
 * called by system playbooks only: else an ordinary playbook could call one with inputs of its author's choice, in the name of
 * whichever administrator runs it.
 */
export function callRefusal(callerPath: string, calledPath: string): string | undefined {
  if (!isSystemPath(calledPath) || isSystemPath(callerPath)) return undefined;
  return `'${callerPath}' may not call '${calledPath}': a system playbook is called by system playbooks only`;
}

/**
 * What a user may do by their rows and permissions. System playbooks act with the rights of the service: executing or changing
 * one takes a permission to manage users or roles as well, whatever the rows say. To manage credentials is not enough: some of these
 * playbooks give roles.
 */
export function decideUserAccess(
  { playbooks, permissions }: { playbooks: readonly PlaybookPermission[]; permissions: readonly string[] },
  action: AccessAction,
  path: string,
): AccessDecision {
  const decision = decideAccess(playbooks, action, path);
  if (!decision.allowed || action === "view" || !isSystemPath(path)) return decision;
  if (SYSTEM_PERMISSIONS.some((name) => permissions.includes(name))) return decision;
  const needs = SYSTEM_PERMISSIONS.join(" or ");
  return { allowed: false, rule: `no role: ${path} is a system playbook, which takes the permission ${needs}` };
}

/** The actions that some row gives, whatever for: with none of them nothing can be done at all. */
export function allowedActions(permissions: readonly PlaybookPermission[]): AccessAction[] {
  return ACCESS_ACTIONS.filter((action) => permissions.some((row) => gives(row, action)));
}

function isAbout(row: PlaybookPermission, path: string): boolean {
  return names(row, path) && !(row.denyPattern !== null && matchesPattern(row.denyPattern, path));
}

function names({ playbookPath, allowPattern }: PlaybookPermission, path: string): boolean {
  return playbookPath === path || (allowPattern !== null && matchesPattern(allowPattern, path));
}

/** Whether a row gives the action, on the paths that it is about. */
export function gives(
  row: Pick<PlaybookPermission, "canExecute" | "canView" | "canModify">,
  action: AccessAction,
): boolean {
  if (action === "execute") return row.canExecute;
  return action === "view" ? row.canView : row.canModify;
}

/**
 * True when the whole path fits: `*` stands for anything within a segment, `**` and `%` for anything, slashes too; every other
 * character for itself. A pattern of several lines fits what one of them fits; no path has a line break. Takes time in
 * proportion to both lengths, whatever the pattern: a regular expression made of one could be kept busy for hours by a long
 * path.
 */
export function matchesPattern(pattern: string, path: string): boolean {
  return pattern.split("\n").some((line) => matchesLine(line, path));
}

function matchesLine(pattern: string, path: string): boolean {
  /** `reached[i]`: what was read of the pattern fits the first `i` characters. */
  let reached = new Array<boolean>(path.length + 1).fill(false);
  reached[0] = true;
  for (const part of patternParts(pattern)) {
    const next = new Array<boolean>(path.length + 1).fill(false);
    for (let at = 0; at <= path.length; at += 1) {
      if (typeof part === "string") next[at] = at > 0 && reached[at - 1] === true && path[at - 1] === part;
      else
        next[at] = reached[at] === true || (at > 0 && next[at - 1] === true && (part.slashes || path[at - 1] !== "/"));
    }
    reached = next;
  }
  return reached[path.length] === true;
}

/** The pattern as a regular expression of PostgreSQL, for lists: its engine does not go back over what it has read. */
export function patternRegex(pattern: string): string {
  const lines = pattern.split("\n").map((line) => patternParts(line).map(regexOf).join(""));
  return `^(?:${lines.join("|")})$`;
}

function regexOf(part: PatternPart): string {
  if (typeof part !== "string") return part.slashes ? ".*" : "[^/]*";
  // A backslash before a letter or a digit would mean something else.
  return /[\w\u0080-\uffff]/.test(part) ? part : `\\${part}`;
}

/** Rows as lists look at them: all that have the same exception, as regular expressions of PostgreSQL. */
export interface PathRule {
  /** Paths that they are about by name. */
  exact: string[];
  /** The others that they are about. */
  allow: string | null;
  /** And what they are not about after all. */
  deny: string | null;
}

/**
 * The rows that give an action, for lists; undefined when everything may be seen. Without a row nothing may. Rows with the same
 * exception are one rule: PostgreSQL keeps 32 compiled expressions, and with more it would compile them for every path again
 * (60 for 10,000 paths: 9 s instead of 20 ms).
 */
export function pathRules(permissions: readonly PlaybookPermission[], action: AccessAction): PathRule[] | undefined {
  const giving = permissions.filter((row) => gives(row, action));
  if (giving.some(({ allowPattern, denyPattern }) => denyPattern === null && /^(%|\*\*)$/.test(allowPattern ?? ""))) {
    return undefined;
  }
  return [...new Set(giving.map(({ denyPattern }) => denyPattern))].map((deny) => {
    const rows = giving.filter(({ denyPattern }) => denyPattern === deny);
    const patterns = new Set(rows.flatMap(({ allowPattern }) => allowPattern ?? []));
    return {
      exact: rows.flatMap(({ playbookPath }) => playbookPath ?? []),
      allow: patterns.size === 0 ? null : patternRegex([...patterns].join("\n")),
      deny: deny === null ? null : patternRegex(deny),
    };
  });
}

/** A character of a pattern, or a wildcard. */
export type PatternPart = string | { slashes: boolean };

/** A line of a pattern as characters and wildcards; wildcards beside each other are one. */
export function patternParts(pattern: string): PatternPart[] {
  const parts: PatternPart[] = [];
  for (const [text] of pattern.matchAll(/[*%]+|[^*%]/gs)) {
    if (/^[*%]/.test(text)) parts.push({ slashes: text.length > 1 || text === "%" });
    else parts.push(text);
  }
  return parts;
}
