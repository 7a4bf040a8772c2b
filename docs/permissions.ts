import { join } from "node:path";
import { ROUTES } from "../src/schema/routes/all.ts";
import type { RouteContract, TokenRole } from "../src/schema/routes/contract.ts";
import { type AccessAction, PERMISSIONS, type Permission } from "../src/schema/rules/access-rules.ts";

/** Where the page stands in the checkout. */
export const PERMISSIONS_PAGE = join(import.meta.dirname, "../../docs/permissions.md");

/** What the roles give that an installation begins with: the rows of the migration, written out once more. */
const ROLES: Readonly<
  Record<string, { actions: readonly AccessAction[]; permissions: readonly Permission[]; system: boolean }>
> = {
  admin: { actions: ["execute", "view", "modify"], permissions: PERMISSIONS, system: true },
  developer: { actions: ["execute", "view", "modify"], permissions: ["view_operations"], system: false },
  analyst: { actions: ["execute", "view"], permissions: [], system: false },
  viewer: { actions: ["view"], permissions: [], system: false },
  "no role": { actions: [], permissions: [], system: false },
};

const TOKENS: Readonly<Record<string, TokenRole>> = { "no token": "anonymous", worker: "worker", operator: "operator" };
const RANK: Readonly<Record<TokenRole, number>> = { anonymous: 0, worker: 1, operator: 2 };

/** Who calls, by the columns of the table. */
export const CALLERS = [...Object.keys(TOKENS), ...Object.keys(ROLES), "session over"];

/** `yes`, `claim` (with the secret of a claim), or the status of the refusal. */
export type Verdict = "yes" | "claim" | "401" | "403";

/** A row of the table. */
export interface PermissionRow {
  /** `GET /api/catalog/resource/:path{.+}` */
  route: string;
  /** About a playbook of the system, `api_integration/…`, or what has become of one. */
  isSystem: boolean;
  /** By the names of {@link CALLERS}. */
  verdicts: Readonly<Record<string, Verdict>>;
}

/** Every route with who may call it, by its contract; those about a playbook twice, as the system's are for administrators. */
function permissionRows(): PermissionRow[] {
  return ROUTES.flatMap((contract) => {
    const { user } = contract;
    const isAboutOne = typeof user === "object" && "of" in user && user.of !== "list";
    return (isAboutOne ? [false, true] : [false]).map((isSystem) => ({
      route: `${contract.method.toUpperCase()} ${contract.path}`,
      isSystem,
      verdicts: Object.fromEntries(CALLERS.map((caller) => [caller, verdict(caller, contract, isSystem)])),
    }));
  });
}

function verdict(caller: string, { access, claim, user }: RouteContract, isSystem: boolean): Verdict {
  if (access === "anonymous") return "yes";
  const token = TOKENS[caller];
  if (token === "anonymous" || caller === "session over") return "401";
  if (token === "worker" && access === "worker" && claim !== undefined) return "claim";
  if (token !== undefined) return RANK[token] >= RANK[access] ? "yes" : "403";
  if (user === undefined) return "403";
  if (user === "session") return "yes";
  const { actions = [], permissions = [], system = false } = ROLES[caller] ?? {};
  if ("permission" in user) return [user.permission].flat().some((one) => permissions.includes(one)) ? "yes" : "403";
  return user.of === "list" || (actions.includes(user.action) && (system || !isSystem)) ? "yes" : "403";
}

const OF_SYSTEM = " of the system";

/** docs/permissions.md: who may call which route of the server, from the contracts by which it decides. */
export function permissionsPage(): string {
  const rows = permissionRows().map(
    ({ route, isSystem, verdicts }) =>
      `| \`${route}\`${isSystem ? OF_SYSTEM : ""} | ${CALLERS.map((caller) => verdicts[caller]).join(" | ")} |`,
  );
  return `# Permissions

Who may call which route of the server: by the token, and behind a gateway by the roles of the user whose session it is
([access.md](access.md)). \`yes\`, or the status of the refusal. Each of these calls is tried by a test
(\`test/routes/permissions.test.ts\`).

- The roles are those that an installation begins with; others give what you say. A path or an execution of one's own team is
  meant; *of the system* is \`api_integration/**\` and \`system/**\`.
- Lists show every user with a session what they may view, which may be nothing.
- *session over*: expired, unused for too long, revoked, of an inactive user, or never existing.
- An unknown token counts as no token. A session that comes with another token than the operator's is
  refused whatever its user may.
- Every user with a session may validate a text (\`/api/catalog/validate\`): that reads nothing else.
- *claim*: a worker may, with the secret of a command that it has claimed now, and only what is that command's
  ([worker-protocol.md](worker-protocol.md#secrets-of-claims)); else 403.

This page is generated (\`npm run generate\`).

| Route | ${CALLERS.join(" | ")} |
|---|${CALLERS.map(() => "---|").join("")}
${rows.join("\n")}
`;
}

/** The rows of such a page. */
export function readPermissions(page: string): PermissionRow[] {
  return [...page.matchAll(/^\| `([A-Z]+ [^`]+)`( of the system)? \| (.*) \|$/gm)].map(
    ([, route = "", system, cells = ""]) => {
      const verdicts = cells.split(" | ") as Verdict[];
      return {
        route,
        isSystem: system !== undefined,
        verdicts: Object.fromEntries(CALLERS.map((caller, index) => [caller, verdicts[index] ?? "401"])),
      };
    },
  );
}
