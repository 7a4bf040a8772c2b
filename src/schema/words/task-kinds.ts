import { KIND_ALIASES, PARSED_ONLY_KINDS, RUNNABLE_KINDS } from "./playbook.ts";

/** The keys that a task of one kind takes besides those of every task, with what they mean. */
export type KindKeys = Readonly<Record<string, string>>;

const SQL: KindKeys = {
  command: "SQL text; several statements are separated by `;`.",
  commands: "SQL texts, run in order.",
  query: "The same as `command`.",
  queries: "The same as `commands`.",
  cmd: "The same as `command`.",
  cmds: "The same as `commands`.",
  command_b64: "`command`, base64-encoded.",
  commands_b64: "`commands`, base64-encoded.",
  query_b64: "`query`, base64-encoded.",
  queries_b64: "`queries`, base64-encoded.",
  cmd_b64: "`cmd`, base64-encoded.",
  cmds_b64: "`cmds`, base64-encoded.",
  script: "The same as `command`.",
  sql: "The same as `command`.",
  params: "Values of the placeholders `$1`, `$2`, …",
  pool: "Read and passed over: the worker keeps a bounded pool for each credential itself.",
  connection_string: "Connection address instead of a credential.",
  host: "Database host; this and the next keys win over the credential's.",
  port: "Database port; default 5432.",
  user: "Database user.",
  password: "Password; better in a credential.",
  database: "Database name; default the user's.",
  sslmode: "disable, prefer, require or verify-full.",
};

/**
 * Aliases of the credentials that a `transfer` task names within its `source` and `target`: they stand in the task's
 * `auth`, so that they are resolved, planned and masked as every other.
 */
export const TRANSFER_SOURCE = "transfer_source";
/** See {@link TRANSFER_SOURCE}. */
export const TRANSFER_TARGET = "transfer_target";

/**
 * Keys by canonical kind (language document, section 8). A kind without an entry takes any key: nothing here knows what
 * its runner reads.
 */
export const KIND_KEYS: Readonly<Record<string, KindKeys>> = {
  python: {
    code: "Python text; its `result`, top-level `return` or `main(...)` is the result.",
    code_b64: "`code`, base64-encoded.",
    script: "Code from elsewhere: `{uri, sha256, source: {type: inline | file | http, …}}`.",
    libs: "Modules to import by alias; a list names packages.",
  },
  http: {
    method: "HTTP method; default GET.",
    url: "Address of the request.",
    endpoint: "The same as `url`.",
    params: "Query parameters; those that are null are left out.",
    headers: "Request headers.",
    json: "JSON body.",
    body: "Body: text, or JSON.",
    payload: "The same as `body`.",
    data: "Query parameters for GET and DELETE, else the body.",
    verify_ssl: "Whether the server's certificate is checked; default true.",
    follow_redirects: "Whether redirects are followed; default true.",
    idempotency_key: "Sent as `Idempotency-Key`; unsafe methods have a stable one by default.",
  },
  sqldb: SQL,
  duckdb: { ...SQL, database: "Database file; default one in memory for each execution." },
  warehouse: {
    ...SQL,
    account: "Account of the warehouse; this and the next keys win over the credential's.",
    warehouse: "Warehouse that computes.",
    schema: "Schema of names without one.",
    role: "Role of the session.",
    url: "Address instead of the account's own: a private link.",
  },
  nats: {
    operation: "kv_get, kv_put, kv_delete or kv_keys, also without kv_.",
    action: "The same as `operation`.",
    bucket: "Bucket; created by the first put.",
    key: "Key in the bucket; of kv_keys a pattern, such as `user.*` or `user.>`.",
    value: "Value to put: text as it is, anything else as JSON.",
    ttl: "Seconds after which the value that is put is gone.",
    ttl_seconds: "The same as `ttl`.",
    format: "`text` gives a value as text also where it is JSON; default `auto`.",
    url: "Server address instead of a credential.",
  },
  playbook: {
    path: "Catalog path of the playbook; in a local run also a file path relative to this document.",
    catalog_id: "Catalog id instead of `path`.",
    version: "Version; default the newest.",
    payload: "The same as `input`.",
    return_step: "Step of the child whose result is merged over `{status, execution_id}`.",
    mode: "`async` does not wait for the child.",
  },
  workbook: { name: "Name of the tool in the document's `workbook`." },
  mcp: {
    server: "Registered MCP server: the catalog path of an MCP resource, `mcp/` before it may be left out.",
    endpoint: "Address of the MCP server.",
    transport: "streamable_http or sse; default whichever the server speaks.",
    method:
      "health, tools/list, tools/call, resources/list, resources/templates/list, resources/read, prompts/list or prompts/get.",
    tool: "Tool to call.",
    arguments: "Arguments of the tool: a map, or JSON text.",
    headers: "Request headers.",
    messages: "true puts the JSON-RPC messages of the call into the result, as `messages`.",
    access_token: "Bearer token that is sent instead of `auth`.",
  },
  artifact: {
    action: "get (default) or put.",
    file: "put: name of the file, without folders.",
    content: "put: text of the file; anything else is written as JSON.",
    content_b64: "put: the file's bytes in base64.",
    content_type: "put: media type; default by the name's ending.",
    uri: "Reference of the stored result.",
    ref: "Reference of the stored result.",
    result_ref: "Reference of the stored result.",
    temp_ref: "Earlier name of `result_ref`.",
  },
  shell: {
    cmds: "Commands, run in order until one fails.",
    cmd: "One command or a list.",
    command: "One command or a list.",
    cwd: "Working directory.",
    env: "Environment variables.",
  },
  transfer: {
    source: "Where rows come from: `{type: http | sqldb | duckdb, url | auth, query}`.",
    target: "Where rows go: `{type: sqldb | duckdb, auth, table, mapping}`.",
    mode: "append (default), replace, truncate or upsert.",
    key: "Columns that tell rows apart, for upsert.",
    chunk_size: "Rows in a batch; default 10,000.",
  },
  wait: {
    for: "How long: `30s`, `15m`, `1h30m`, `2d`, or a number of seconds.",
    until: "The moment, as `2026-01-31T12:00:00Z`; without an offset in `timezone`.",
    timezone: "Time zone of `until`, as `Europe/Berlin`; default UTC.",
    signal: "Name of the signal for which it waits.",
    key: "Key of that signal, so that it is addressed by what it is about; default: one without a key.",
    when: "Which signals it takes, by `signal.data`; others are left for other steps.",
    approval:
      "What people are asked for: `{title, description, form, approvers, required, rejections, remind_every, escalate, notify, link_login}`. `notify: {playbook, input, to}` tells people, with `to` each by a message and a link of their own, `link_login: true` has them log in to use its link.",
    on_timeout: "`continue`: a time-out is the result `{outcome: timeout}`, and no error.",
  },
  noop: { result: "The result; default `{status: ok}`." },
};

/** Every kind that a document may name, aliases included. */
export const KNOWN_KINDS: readonly string[] = [...RUNNABLE_KINDS, ...PARSED_ONLY_KINDS, ...Object.keys(KIND_ALIASES)];

/** The one name of a kind (language document, section 3); unknown kinds keep theirs. */
export function canonicalKind(kind: string): string {
  return Object.hasOwn(KIND_ALIASES, kind) ? KIND_ALIASES[kind]! : kind;
}
