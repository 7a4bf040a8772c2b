import { ACCESS_ACTIONS } from "../../schema/rules/access-rules.ts";
import type { CliCommand, CliOption } from "../command-line/command.ts";
import { JSON_SWITCH, WHICH_SERVER } from "../command-line/common-options.ts";

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
Commands that call this context then do what you may do there: 'flow can' tells.

With FLOW_IDP_CLIENT_ID and no token, the provider is asked itself: flow prints an address, opens nothing, and waits
five minutes for the browser to come back to http://127.0.0.1:PORT/callback (authorization code with PKCE). The client
must be registered there as a public one with this redirect address, and be one whose tokens the gateway takes.

With --json one object: {gateway, context, user: {user_id, email, display_name, roles}, expires_at}.

Exit codes
  0 logged in   1 refused, or somebody cannot be reached   2 the command line was not understood   130 interrupted

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
  summary: "Show as whom commands call, with which roles and permissions",
  arguments: [],
  options: [JSON_SWITCH, ...WHICH_SERVER],
  details: `A server is called with a token: by its operator, or by a worker. A gateway is called by a user.

Examples
  flow whoami
  flow whoami --context team --json`,
  load: async () => (await import("./whoami.ts")).showIdentity,
};

const CAN: CliCommand = {
  name: "can",
  summary: "Tell whether you, or another user, may do something with a playbook, and which rule says so",
  arguments: [
    {
      name: "action",
      summary: "execute: start, cancel; view: see it and its executions; modify: register",
      choices: ACCESS_ACTIONS,
    },
    { name: "path", summary: "Catalog path; it need not be registered" },
  ],
  options: [
    { name: "user", value: "EMAIL", summary: "Another user; takes the permission manage_users" },
    JSON_SWITCH,
    ...WHICH_SERVER,
  ],
  details: `With --json one object: {allowed, rule, action, path, email}.

Exit codes
  0 yes   1 no; with nothing on standard output: refused, or the server cannot be asked
  2 unknown, or the command line was not understood

Examples
  flow can execute etl/load
  flow can modify etl/load --user ada@example.com && echo yes`,
  load: async () => (await import("./can.ts")).showAccess,
};

const USERS: CliCommand = {
  name: "users",
  summary: "List users, let them in or not, and give them roles",
  arguments: [
    {
      name: "action",
      summary: "list (default), show, add, activate, deactivate, grant, revoke, logout, delete",
      optional: true,
      choices: ["list", "show", "add", "activate", "deactivate", "grant", "revoke", "logout", "delete"],
    },
    { name: "user", summary: "Address or id; not for list", optional: true },
    { name: "role", summary: "Roles, for grant and revoke, and for add", optional: true, many: true },
  ],
  options: [
    { name: "search", value: "TEXT", summary: "List only those with this text in address or name" },
    { name: "role", value: "ROLE", summary: "List only those with this role" },
    { name: "status", value: "STATUS", choices: ["active", "inactive"], summary: "List only these" },
    { name: "name", value: "TEXT", summary: "Name to show, for add; default the address" },
    JSON_SWITCH,
    ...WHICH_SERVER,
  ],
  details: `Who logs in for the first time becomes a user without a role, who may do nothing. 'add' makes one beforehand, so that
the roles are there at the first login. 'deactivate' ends the sessions too, 'logout' does that alone. Every change counts
from the user's next call on, and stands in the audit log. It takes the permission manage_users, and nobody gives what
they do not have.

Examples
  flow users list --search example.com --status active
  flow users add ada@example.com analyst
  flow users grant ada@example.com developer
  flow users deactivate ada@example.com`,
  load: async () => (await import("./users.ts")).manageUsers,
};

const ROLES: CliCommand = {
  name: "roles",
  summary: "List roles, and say what they allow",
  arguments: [
    {
      name: "action",
      summary:
        "list (default), show, permissions, create, delete, activate, deactivate, allow, deny, disallow, give, take",
      optional: true,
      choices: [
        "list",
        "show",
        "permissions",
        "create",
        "delete",
        "activate",
        "deactivate",
        "allow",
        "deny",
        "disallow",
        "give",
        "take",
      ],
    },
    { name: "role", summary: "Name of the role; not for list and permissions", optional: true },
    {
      name: "what",
      summary: "Paths for allow and deny, ids for disallow, permissions for give and take",
      optional: true,
      many: true,
    },
  ],
  options: [
    { name: "description", value: "TEXT", summary: "What it is for, for create" },
    { name: "execute", summary: "Allow to start and cancel" },
    { name: "view", summary: "Allow to see, executions and their results too" },
    { name: "modify", summary: "Allow to register" },
    { name: "except", value: "PATTERN", many: true, summary: "Paths that are not meant after all, for allow" },
    JSON_SWITCH,
    ...WHICH_SERVER,
  ],
  details: `Playbooks: 'allow' gives a permission on catalog paths; * stands for anything within a segment, ** or % for anything.
'deny' takes paths out of everything that the role allows already; 'disallow' takes a permission away by the id that
'show' prints. A user may do what any of their roles allows: a denial binds its own role alone.

Beside playbooks: 'give' and 'take' permissions such as manage_users; 'permissions' lists them.

Every change counts from the next call of each user on. It takes the permission manage_roles. The role admin stays as
it is.

Examples
  flow roles show analyst
  flow roles create team-etl --description "runs the loads"
  flow roles allow team-etl 'etl/**' --execute --view --except 'etl/private/**'
  flow roles deny team-etl 'etl/payroll'
  flow roles give team-etl view_audit`,
  load: async () => (await import("./roles.ts")).manageRoles,
};

/** Logging in, and what users may do. */
export const ACCESS_COMMANDS: readonly CliCommand[] = [LOGIN, LOGOUT, WHOAMI, CAN, USERS, ROLES];
