import { AUDIT_RESULTS } from "../../schema/api/audit.ts";
import { ACCESS_ACTIONS } from "../../schema/rules/access-rules.ts";
import {
  type CliArgument,
  type CliCommand,
  type CliCommandSet,
  type CliEntry,
  type CliOption,
  commandsOf,
} from "../command-line/command.ts";
import { JSON_SWITCH, SERVER_OPTIONS } from "../command-line/common-options.ts";

const GATEWAY: readonly CliOption[] = [
  { name: "gateway", value: "URL", summary: "Address of the gateway; default that of the context" },
  { name: "context", value: "NAME", summary: "Context that remembers the session; default the one in use" },
];

const LOGIN: CliCommand = {
  name: "login",
  summary: "Log in at a gateway with an identity provider's token, or in a browser",
  arguments: [],
  options: [
    ...GATEWAY,
    { name: "id-token-file", value: "FILE", summary: "File with the ID token; - reads a pipe" },
    { name: "id-token", value: "TOKEN", summary: "The ID token itself; other users of this machine can see it" },
    {
      name: "domain",
      value: "NAME",
      summary: "Domain of the provider, as the gateway allows it; default the token's issuer",
    },
    {
      name: "issuer",
      value: "URL",
      summary: "Address of the provider, for a login in a browser; default https://DOMAIN",
    },
    {
      name: "port",
      value: "PORT",
      summary: "Port of this machine to which the browser comes back; default a free one",
    },
    JSON_SWITCH,
  ],
  details: `The gateway exchanges the token for a session, which is kept in the context, readable by you alone, and never printed.
Commands that use this context may then do what you may do there: see 'flow can'.

With FLOW_IDP_CLIENT_ID and no token, the provider is asked itself: flow prints an address, opens nothing, and waits
five minutes for the browser to come back to http://127.0.0.1:PORT/callback (authorization code with PKCE). The client
must be registered there as a public one with this redirect address, and be one whose tokens the gateway takes.

With --json one object: {gateway, context, user: {user_id, email, display_name, roles}, expires_at}.

Exit codes
  0 logged in   1 refused, or not reachable   2 invalid command line   130 interrupted

Examples
  flow login --gateway https://flow.example.com --id-token-file token.txt
  get-id-token | flow login --id-token-file -
  FLOW_IDP_CLIENT_ID=flow-cli flow login --domain login.example.com`,
  load: async () => (await import("./login.ts")).logIn,
};

const LOGOUT: CliCommand = {
  name: "logout",
  summary: "End the session at a gateway, and forget it",
  arguments: [],
  options: [...GATEWAY, { name: "local", summary: "Only forget it here, where the gateway cannot be reached" }],
  details: `Where the gateway cannot be reached the session is kept, so that it can be ended later.

Examples
  flow logout
  flow logout --context team --local`,
  load: async () => (await import("./logout.ts")).logOut,
};

const WHOAMI: CliCommand = {
  name: "whoami",
  summary: "Show which user commands run as, with roles and permissions",
  arguments: [],
  options: SERVER_OPTIONS,
  details: `A server is called with a token: by its operator, or by a worker. A gateway is called by a user.

Examples
  flow whoami
  flow whoami --context team --json`,
  load: async () => (await import("./whoami.ts")).showIdentity,
};

const CAN: CliCommand = {
  name: "can",
  summary: "Check whether you, or another user, may do something with a playbook, and by which rule",
  arguments: [
    {
      name: "action",
      summary: "execute: start, cancel; view: see it and its executions; modify: register",
      choices: ACCESS_ACTIONS,
    },
    { name: "path", summary: "Catalog path; it need not be registered" },
  ],
  options: [
    { name: "user", value: "EMAIL", summary: "Another user; needs the permission manage_users" },
    ...SERVER_OPTIONS,
  ],
  details: `With --json one object: {allowed, rule, action, path, email}.

Exit codes
  0 yes   1 no; with nothing on standard output: refused, or the server cannot be asked
  2 unknown, or the command line was not understood

Examples
  flow can execute etl/load
  flow can modify etl/load --user ada@example.com && echo yes`,
  load: async () => (await import("./whoami.ts")).showAccess,
};

const USER: CliArgument = { name: "user", summary: "Email address or id of the user" };

const userCommand = commandsOf(async () => (await import("./users.ts")).USER_ACTIONS, SERVER_OPTIONS);

const USERS: CliCommandSet = {
  name: "users",
  summary: "List users, let them in or not, and give them roles",
  default: "list",
  commands: [
    {
      ...userCommand(
        "list",
        "List users",
        [],
        [
          { name: "search", value: "TEXT", summary: "List only those with this text in address or name" },
          { name: "role", value: "ROLE", summary: "List only those with this role" },
          { name: "status", value: "STATUS", choices: ["active", "inactive"], summary: "List only these" },
        ],
      ),
      surplusOption: "search",
    },
    userCommand("show", "Show one user", [USER]),
    userCommand(
      "add",
      "Add a user, with roles",
      [
        { name: "email", summary: "Email address of the user" },
        { name: "role", summary: "Roles to give", optional: true, many: true },
      ],
      [
        { name: "name", value: "TEXT", summary: "Name to show, for add; default the address" },
        {
          name: "issuer",
          value: "URL",
          summary: "Identity provider that alone may vouch for the address, for add; default the service's only one",
        },
        { name: "any-issuer", summary: "The first provider that vouches for the address gets the user, for add" },
      ],
    ),
    userCommand("activate", "Let a user log in", [USER]),
    userCommand("deactivate", "End a user's sessions and refuse new ones", [USER]),
    userCommand("grant", "Give roles", [USER, { name: "role", summary: "Roles to add; see 'flow roles'", many: true }]),
    userCommand("revoke", "Take roles away", [
      USER,
      { name: "role", summary: "Roles to remove; see 'flow users show'", many: true },
    ]),
    userCommand("logout", "End a user's sessions", [USER]),
    userCommand("delete", "Delete a user", [USER]),
  ],
  details: `A person who logs in for the first time becomes a user without roles, who may do nothing. 'add' creates the user
beforehand, so that the roles are there at the first login; then only the service's identity provider may vouch for the
address. With several providers --issuer says which. Every change takes effect at the user's next call and is
recorded in the audit log. These commands need the permission manage_users, and nobody can give what they do not have.

Examples
  flow users list --search example.com --status active
  flow users add ada@example.com analyst --issuer https://login.example.com/
  flow users grant ada@example.com developer
  flow users deactivate ada@example.com`,
};

const ROLE: CliArgument = { name: "role", summary: "Name of the role" };

const roleCommand = commandsOf(async () => (await import("./roles.ts")).ROLE_ACTIONS, SERVER_OPTIONS);

const PATTERN: CliArgument = { name: "pattern", summary: "Catalog paths; * and ** match parts of them", many: true };
const PERMISSION: CliArgument = {
  name: "permission",
  summary: "Permissions such as manage_users; see 'flow roles permissions'",
  many: true,
};

const ROLES: CliCommandSet = {
  name: "roles",
  summary: "List roles, and say what they allow",
  default: "list",
  commands: [
    roleCommand("list", "List roles"),
    roleCommand("show", "Show what a role allows", [ROLE]),
    roleCommand("permissions", "List the global permissions, which are not about playbooks"),
    roleCommand(
      "create",
      "Create a role without permissions",
      [ROLE],
      [{ name: "description", value: "TEXT", summary: "What it is for, for create" }],
    ),
    roleCommand("delete", "Delete a role, also from its users", [ROLE]),
    roleCommand("activate", "Activate a role again", [ROLE]),
    roleCommand("deactivate", "Deactivate a role: it grants nothing", [ROLE]),
    roleCommand(
      "allow",
      "Give a permission on catalog paths",
      [ROLE, PATTERN],
      [
        { name: "execute", summary: "Allow to start and cancel, for allow" },
        { name: "view", summary: "Allow to see, executions and their results too, for allow" },
        { name: "modify", summary: "Allow to register, for allow" },
        { name: "except", value: "PATTERN", many: true, summary: "Paths to leave out, for allow; may be repeated" },
      ],
    ),
    roleCommand("deny", "Take paths out of everything the role allows", [ROLE, PATTERN]),
    roleCommand("disallow", "Remove a permission on paths", [
      ROLE,
      { name: "id", summary: "Ids of the permissions, as 'flow roles show' prints them", many: true },
    ]),
    roleCommand("give", "Grant global permissions, such as manage_users", [ROLE, PERMISSION]),
    roleCommand("take", "Revoke global permissions", [ROLE, PERMISSION]),
  ],
  details: `In patterns * matches anything within a segment, ** or % matches anything. A user may do what any of their roles
allows: a denial applies to its own role alone.

Every change takes effect at the next call of each user. These commands need the permission manage_roles. The role
admin cannot be changed.

Examples
  flow roles show analyst
  flow roles create team-etl --description "runs the loads"
  flow roles allow team-etl 'etl/**' --execute --view --except 'etl/private/**'
  flow roles deny team-etl 'etl/payroll'
  flow roles give team-etl view_audit`,
};

const auditCommand = commandsOf(async () => (await import("./audit.ts")).AUDIT_ACTIONS, SERVER_OPTIONS);

const AUDIT: CliCommandSet = {
  name: "audit",
  summary: "Show the audit log, and verify that it is whole",
  default: "list",
  commands: [
    auditCommand(
      "list",
      "List who did what, and which rule allowed or refused it, newest first",
      [],
      [
        { name: "actor", value: "NAME", summary: "Only what this user (address) or worker did, for list" },
        { name: "action", value: "ACTION", summary: "Only this action, as playbook.execute, for list" },
        { name: "resource", value: "RESOURCE", summary: "Only on this, as playbook/etl/load, for list" },
        { name: "execution", value: "ID", summary: "Only about this execution, for list" },
        { name: "result", value: "RESULT", choices: AUDIT_RESULTS, summary: "Only with this result, for list" },
        {
          name: "since",
          value: "TIME",
          summary: "Since 90s, 15m, 2h, 7d, or a time as 2026-01-31T12:00:00Z, for list",
        },
        { name: "limit", value: "NUMBER", summary: "How many, for list; default 50" },
      ],
    ),
    auditCommand(
      "verify",
      "Check the hash of each row, and that none is missing",
      [],
      [
        {
          name: "heads",
          value: "FILE",
          summary: "What an earlier 'verify --json' printed: must still be there; - reads a pipe",
        },
      ],
    ),
  ],
  details: `Each row holds the hash of the one before it. 'verify' names the rows that were changed, that are missing, or that were
moved. A person who owns the tables could write the whole log anew: keep the ends that 'verify --json' prints in
another place, and give them to --heads the next time.

These commands need the permission view_audit.

With --json, list: {entries: […]}; verify: {whole, rows, before, problems: [{kind, chain, seq, audit_id, message}], heads}.

Exit codes
  0 done; verify: the log is whole   1 failed; verify: it is not whole   2 invalid command line

Examples
  flow audit list --result deny --since 1d
  flow audit list --execution 7301444403200000001 --json
  flow audit verify --json > heads.json
  flow audit verify --heads heads.json`,
};

/** Logging in, and what users may do. */
export const ACCESS_COMMANDS: readonly CliEntry[] = [LOGIN, LOGOUT, WHOAMI, CAN, USERS, ROLES, AUDIT];
