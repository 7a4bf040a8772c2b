import {
  type CliArgument,
  type CliCommand,
  type CliCommandSet,
  type CliEntry,
  commandsOf,
} from "../command-line/command.ts";
import { JSON_SWITCH, SERVER_OPTIONS } from "../command-line/common-options.ts";

const SERVE: CliCommand = {
  name: "serve",
  summary: "Start the service: a server and a worker, with an embedded PostgreSQL unless FLOW_DATABASE_URL is set",
  arguments: [],
  options: [
    {
      name: "role",
      value: "ROLE",
      choices: ["server", "worker", "all", "gateway", "doctor"],
      summary: "What this process is; default all: server, worker, and where logins are set up a gateway",
    },
    { name: "host", value: "ADDRESS", summary: "Address that it listens on; default FLOW_HOST, 127.0.0.1" },
    {
      name: "port",
      value: "PORT",
      summary: "Port, 0 for a free one; default 8082, of a gateway 8090, of the doctor 8765",
    },
    {
      name: "log-format",
      value: "FORMAT",
      choices: ["pretty", "json"],
      summary: "How the log looks; default FLOW_LOG_FORMAT, else pretty on a terminal and json elsewhere",
    },
  ],
  details: `One line on standard output says where it answers and where its data is; the log goes to standard error:
short lines on a terminal, else one JSON object per line. Ctrl-C or SIGTERM stops it: the worker's commands get FLOW_WORKER_DRAIN_SECONDS to end, requests under way
end, then the database. A second one leaves at once.

A worker (--role worker) calls the server at FLOW_SERVER_URL with FLOW_WORKER_TOKEN and needs nothing else; start as many as
there is work for, anywhere.

A gateway (--role gateway) stands before the server at FLOW_BASE_URL: people log in there (docs/gateway.md). The doctor
(--role doctor) looks for what is stuck.

Without FLOW_SERVER_TOKEN it answers to everyone and therefore listens on this machine alone.

Exit codes
  0 stopped   1 failed   2 settings that cannot be used, an address that is taken

Examples
  flow serve
  flow serve --port 9000
  FLOW_SERVER_URL=https://flow.example.com FLOW_WORKER_TOKEN=… flow serve --role worker
  FLOW_DATABASE_URL=postgres://flow:…@db:5432/flow FLOW_ENCRYPTION_KEYS=k1:… FLOW_SERVER_TOKEN=… flow serve --host 0.0.0.0`,
  load: async () => (await import("./serve.ts")).runServe,
};

const REGISTER: CliCommand = {
  name: "register",
  summary: "Register documents on a server, each as the newest version of its path",
  arguments: [
    { name: "file", summary: "Documents, or folders whose documents are registered", many: true, complete: "file" },
  ],
  options: [
    { name: "force", summary: "Make a version also of a document whose text is that of the newest one" },
    { name: "if-changed", summary: "What it does without --force, for older scripts" },
    { name: "strict", summary: "Refuse a document that has warnings" },
    ...SERVER_OPTIONS,
  ],
  details: `All problems of a refused document are listed with their places; the other documents are still registered. A document whose
text equals the newest version makes no new one. With --json one object: {registered: […], refused: […]}.

Exit codes
  0 all registered   1 the server cannot be reached or failed   2 a document was refused, or cannot be read

Examples
  flow register hello.yaml
  flow register playbooks --json
  flow register hello.yaml --force`,
  load: async () => (await import("../documents/register.ts")).registerFiles,
};

const CATALOG_PATH: CliArgument = { name: "path", summary: "Path of the entry" };

const catalogCommand = commandsOf(
  async () => (await import("../documents/catalog.ts")).CATALOG_ACTIONS,
  SERVER_OPTIONS,
);

const CATALOG: CliCommandSet = {
  name: "catalog",
  summary: "Show what is registered on a server, and pause it",
  default: "list",
  commands: [
    {
      ...catalogCommand(
        "list",
        "List the entries",
        [],
        [
          {
            name: "type",
            value: "KIND",
            choices: ["playbook", "agent", "mcp", "trigger"],
            summary: "List only entries of this kind",
          },
          { name: "prefix", value: "TEXT", summary: "List only paths that begin with this" },
        ],
      ),
      surplusOption: "prefix",
    },
    catalogCommand(
      "get",
      "Print one document",
      [CATALOG_PATH],
      [{ name: "version", value: "NUMBER", summary: "Version to get; default the newest" }],
    ),
    catalogCommand("versions", "List the versions of a path", [CATALOG_PATH]),
    catalogCommand(
      "pause",
      "Refuse starts of a path until it is resumed; running executions continue",
      [CATALOG_PATH],
      [{ name: "reason", value: "TEXT", summary: "Why; every start that is refused says it" }],
    ),
    catalogCommand(
      "resume",
      "Start executions of a paused path again",
      [CATALOG_PATH],
      [{ name: "reason", value: "TEXT", summary: "Why, for the audit log" }],
    ),
  ],
  details: `Examples
  flow catalog
  flow catalog list --prefix etl/ --type agent
  flow catalog get etl/load --version 3 > load.yaml
  flow catalog versions etl/load --json
  flow catalog pause etl/load --reason "the warehouse is down"`,
};

const CONTEXT_NAME: CliArgument = { name: "name", summary: "Name of the context" };

const contextCommand = commandsOf(async () => (await import("../server/context.ts")).CONTEXT_ACTIONS, [JSON_SWITCH]);

const CONTEXT: CliCommandSet = {
  name: "context",
  summary: "Name the servers and gateways that commands call, and choose one",
  commands: [
    contextCommand(
      "add",
      "Add or replace a context",
      [CONTEXT_NAME],
      [
        { name: "server", value: "URL", summary: "Address of the server, for add" },
        { name: "gateway", value: "URL", summary: "Or of the gateway in front of it, where users log in, for add" },
        { name: "token-file", value: "FILE", summary: "File with the token, for add; /dev/stdin reads it from a pipe" },
      ],
    ),
    contextCommand("use", "Make commands call a context", [CONTEXT_NAME]),
    contextCommand("list", "List the contexts"),
    contextCommand("remove", "Remove a context", [CONTEXT_NAME]),
  ],
  details: `Contexts are stored in flow/contexts.json in your settings folder (XDG_CONFIG_HOME, ~/.config), readable only by you.
FLOW_SERVER_URL and FLOW_SERVER_TOKEN override them. The first context that is added is used at once.

A context of a gateway uses the session that 'flow login' opens: commands may then do what its user may do.

Examples
  flow context add prod --server https://flow.example.com --token-file token.txt
  flow context add team --gateway https://flow.example.com
  flow context use prod
  flow context list`,
};

const POOL_NAME: CliArgument = { name: "name", summary: "Name of the pool" };

const poolCommand = commandsOf(async () => (await import("./pools.ts")).POOL_ACTIONS, SERVER_OPTIONS);

const POOLS: CliCommandSet = {
  name: "pools",
  summary: "Give workers tokens that are for the playbooks of some paths alone",
  default: "list",
  commands: [
    poolCommand("list", "List the pools, also revoked ones"),
    poolCommand(
      "create",
      "Make a pool, and print the token of its workers",
      [POOL_NAME],
      [
        {
          name: "paths",
          value: "PATTERN",
          many: true,
          summary: "Paths that it runs, as 'team/**', for create; may be repeated",
        },
        {
          name: "labels",
          value: "KEY=VALUE",
          many: true,
          summary: "Label that its workers have, for create; may be repeated",
        },
      ],
    ),
    poolCommand("rotate", "Print a new token; the old one is refused at once", [POOL_NAME]),
    poolCommand("revoke", "Refuse the token at once; others run the paths again", [POOL_NAME]),
  ],
  details: `A worker of a pool (FLOW_WORKER_TOKEN is the pool's token) gets commands of the pool's paths and no others, and no other worker
gets these. Where the paths of several pools match, the longest pattern counts. Commands that waited when the pool was made
stay with the workers of the shared token. Tokens are printed once, and kept hashed.

Examples
  flow pools create team --paths 'team/**' --labels zone=a
  flow pools list --json
  flow pools rotate team
  flow pools revoke team`,
};

/** `flow serve`, and the commands that register documents and choose a server. */
export const SERVER_COMMANDS: readonly CliEntry[] = [SERVE, REGISTER, CATALOG, CONTEXT, POOLS];
