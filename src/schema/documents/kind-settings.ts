/** Keys of which a task of this kind needs one; without it the task fails when it is reached. The first is the usual one. */
export const KIND_NEEDS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  http: [["url", "endpoint"]],
  python: [["code", "code_b64", "script"]],
  sqldb: [sqlKeys()],
  duckdb: [sqlKeys()],
  warehouse: [sqlKeys()],
  nats: [["operation", "action"], ["bucket"]],
  playbook: [["path", "catalog_id"]],
  mcp: [["server", "endpoint"]],
  artifact: [["ref", "uri", "result_ref", "temp_ref"]],
  shell: [["cmds", "cmd", "command"]],
  transfer: [["source"], ["target"]],
};

/** Keys whose texts are commands: a list of them holds texts, never maps. */
export const COMMAND_KEYS: Readonly<Record<string, readonly string[]>> = {
  shell: ["cmds", "cmd", "command"],
  sqldb: sqlKeys(),
  duckdb: sqlKeys(),
  warehouse: sqlKeys(),
};

const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
const KV = ["get", "put", "delete", "keys"].flatMap((word) => [`kv_${word}`, word]);
const FLAG = ["true", "false", "yes", "no", "on", "off", "1", "0"];

/** The values that a key takes, where these are all: by kind and key, `source.type` for a key within a map. Case is ignored. */
export const KIND_OPTIONS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  http: { verify_ssl: FLAG, follow_redirects: FLAG },
  python: { "script.source.type": ["inline", "file", "http", "https"] },
  sqldb: { sslmode: SSL_MODES, "script.source.type": ["inline", "file", "http", "https"] },
  duckdb: { "script.source.type": ["inline", "file", "http", "https"] },
  warehouse: { "script.source.type": ["inline", "file", "http", "https"] },
  nats: { operation: KV, action: KV, format: ["auto", "text"] },
  playbook: { mode: ["sync", "async"] },
  mcp: {
    method: [
      ...["health", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"],
      ...["prompts/list", "prompts/get"],
    ],
    messages: FLAG,
    transport: ["streamable_http", "sse"],
  },
  artifact: { action: ["get", "put"] },
  transfer: {
    mode: ["append", "insert", "replace", "overwrite", "truncate", "upsert", "merge"],
    "source.type": ["http", "sqldb", "postgres", "sql", "duckdb"],
    "target.type": ["sqldb", "postgres", "sql", "duckdb"],
  },
};

/** HTTP methods that are usual. A server may know others, so only a likely misspelling of one of these is reported. */
export const HTTP_METHODS: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

function sqlKeys(): string[] {
  const keys = ["command", "commands", "query", "queries", "cmd", "cmds", "script", "sql"];
  return [...keys, ...keys.map((key) => `${key}_b64`)];
}
