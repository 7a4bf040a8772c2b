import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { transaction } from "../../../src/repositories/database/database.ts";
import { openServiceDatabase } from "../service-database.ts";

/*
 * Invariants that the database keeps, whatever a program does. Each row of a table below starts from one that is coherent,
 * changes it, and says which constraint refuses that.
 */

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

type Row = Record<string, unknown>;

const SHA256 = "0".repeat(64);
const NOW = new Date("2026-11-21T00:00:00Z");

const COHERENT: Record<string, Row> = {
  execution: {
    execution_id: 10,
    catalog_id: 1,
    path: "a/b",
    version: 1,
    status: "RUNNING",
    last_event_id: 11,
    root_execution_id: 10,
  },
  command: { command_id: 12, execution_id: 10, catalog_id: 1, step: "a", kinds: ["noop"], body: {} },
  batch: { request_id: 20, caller: "worker", body_sha256: SHA256, execution_ids: [10], event_ids: [11] },
  event: {
    event_id: 11,
    execution_id: 10,
    catalog_id: 1,
    event_type: "x",
    node_id: "a",
    node_name: "a",
    node_type: "step",
    status: "RUNNING",
  },
  execution_snapshot: { execution_id: 10, event_id: 11, format: 1, state: "{}" },
  past_snapshot: { execution_id: 10, event_id: 11, number: 1, format: 1, state: "{}" },
  runtime: { runtime_id: 30, kind: "worker", name: "w", status: "ready" },
  worker_pool: { name: "team", paths: ["team/**"], token_sha256: SHA256, created_by: "operator" },
  lease: { name: "reaper", holder: "s", token: 1, acquired_at: NOW, expires_at: new Date(NOW.getTime() + 1) },
  id_source: { last_id: 0 },
  transient: { bucket: "b", key: "k", value: Buffer.from("v") },
  credential_policy: { by_default: "open" },
  credential: { id: 40, name: "c", type: "bearer", data_encrypted: "x" },
  keychain: {
    cache_key: "k:1:global",
    keychain_name: "k",
    catalog_id: 1,
    credential_type: "bearer",
    cache_type: "token",
    scope_type: "global",
    data_encrypted: "x",
    expires_at: NOW,
  },
  result: {
    execution_id: 10,
    ref: "noetl://execution/10/step/a/task/t/run/1",
    root_execution_id: 10,
    state: "stored",
    store: "kv",
    scope: "permanent",
    content_type: "application/json",
    bytes: 2,
    sha256: SHA256,
    payload: Buffer.from("{}"),
  },
  bulk: { bulk_id: 50, action: "cancel", status: "running", filter: {}, options: {}, asked_by: "operator", matched: 1 },
  bulk_item: { bulk_id: 50, execution_id: 10 },
  wait: { command_id: 12, execution_id: 10, kind: "timer", due_at: NOW },
  signal: { signal_id: 60, name: "paid", key: "", sent_by: "operator", kept_until: NOW, expires_at: NOW },
  trigger: { trigger_id: 70, document: "a/b", path: "a/b", name: "t", kind: "schedule", definition: {}, version: 1 },
  trigger_fire: { fire_id: 71, trigger_id: 70, key: "k", due_at: NOW, status: "started", execution_id: 10 },
  trigger_delivery: {
    ...{ delivery_id: 72, trigger_id: 70, verdict: "started", is_refused: false, first_at: NOW, last_at: NOW },
  },
  approval: {
    approval_id: 80,
    execution_id: 10,
    command_id: 12,
    step: "a",
    path: "a/b",
    title: "t",
    approvers: [],
    by_path: true,
    not_starter: false,
    required: 1,
    rejections: 1,
    link_login: false,
    status: "open",
  },
  approval_decision: { approval_id: 80, decided_by: "operator", decision: "approve", decided_at: NOW },
  statistic: { seconds: 60, path: "a/b", at: NOW },
  step_statistic: { seconds: 3600, path: "a/b", at: NOW, step: "a" },
  resource: { path: "a/b", kind: "playbook", version: 1, catalog_id: 1, content_sha256: SHA256 },
  draft: { catalog_id: 2, path: "a/b", kind: "playbook", content: "x" },
  catalog: { catalog_id: 1, path: "a/b", version: 1, kind: "playbook", content: "x", payload: {}, metadata: {} },
};

const CLAIMED: Row = { status: "CLAIMED", attempt: 1, worker: "w", claimed_at: NOW, lease_expires_at: NOW };
const CHILD: Row = { parent_execution_id: 5, root_execution_id: 5 };

/** Changes to a coherent row, and the constraint that refuses it. */
const REFUSED: [table: string, constraint: string, change: Row][] = [
  ["execution", "execution_status", { status: "DONE" }],
  ["execution", "execution_ended", { status: "COMPLETED" }],
  ["execution", "execution_ended", { ended_at: NOW }],
  ["execution", "execution_error", { status: "FAILED", ended_at: NOW }],
  ["execution", "execution_error", { status: "COMPLETED", ended_at: NOW, error: {} }],
  ["execution", "execution_result", { result: {} }],
  ["execution", "execution_progress", { progress: 101 }],
  ["execution", "execution_progress", { progress: -1 }],
  ["execution", "execution_last_event", { last_event_id: 9 }],
  ["execution", "execution_parent", { parent_execution_id: 5 }],
  ["execution", "execution_rerun", { rerun_of: 10 }],
  ["execution", "execution_rerun", { rerun_request: {} }],
  ["execution", "execution_started", { started_kind: "friend" }],
  ["execution", "execution_started", { started_name: "nightly" }],
  ["execution", "execution_parent", { root_execution_id: 5 }],
  ["execution", "execution_parent_step", { parent_step: "a" }],
  ["execution", "execution_idempotency", { idempotency_key: "k" }],
  ["execution", "execution_idempotency", { caller: "c", idempotency_key: "k" }],
  ["command", "command_status", { status: "DONE", attempt: 1 }],
  ["command", "command_lease", { worker: "w" }],
  ["command", "command_lease", { ...CLAIMED, lease_expires_at: null }],
  ["command", "command_lease", { ...CLAIMED, status: "RUNNING", worker: null }],
  ["command", "command_lease", { ...CLAIMED, status: "COMPLETED", ended_at: NOW }],
  ["command", "command_ended", { status: "CANCELLED" }],
  ["command", "command_ended", { ...CLAIMED, ended_at: NOW }],
  ["command", "command_attempt", { attempt: -1 }],
  ["command", "command_attempt", { ...CLAIMED, attempt: 0 }],
  ["command", "command_after_execution", { command_id: 9 }],
  ["batch", "batch_state", { state: "done" }],
  ["batch", "batch_code", { state: "failed" }],
  ["batch", "batch_code", { code: "processing_error" }],
  ["batch", "batch_lease", { state: "processing" }],
  ["batch", "batch_lease", { processor: "s", lease_expires_at: NOW }],
  ["batch", "batch_commands", { commands_generated: -1 }],
  ["event", "event_after_execution", { event_id: 10 }],
  ["event", "event_id_range", { event_id: "9007199254740992" }],
  ["event", "event_node_type", { node_type: "loop" }],
  ["event", "event_attempt", { attempt: -1 }],
  ["event", "event_duration", { duration_ms: -1 }],
  ["execution_snapshot", "execution_snapshot_event", { event_id: 10 }],
  ["execution_snapshot", "execution_snapshot_format", { format: 0 }],
  ["past_snapshot", "past_snapshot_event", { event_id: 10 }],
  ["past_snapshot", "past_snapshot_number", { number: 0 }],
  ["past_snapshot", "past_snapshot_format", { format: 0 }],
  ["runtime", "runtime_kind", { kind: "gateway" }],
  ["runtime", "runtime_status", { status: "gone" }],
  ["runtime", "runtime_capacity", { capacity: -1 }],
  ["runtime", "runtime_capacity", { running: -1 }],
  ["worker_pool", "worker_pool_paths", { paths: [] }],
  ["worker_pool", "worker_pool_token_sha256", { token_sha256: "flowpool_x" }],
  ["lease", "lease_token", { token: 0 }],
  ["lease", "lease_expires", { expires_at: NOW }],
  ["id_source", "id_source_pkey", {}],
  ["id_source", "id_source_singleton", { singleton: false }],
  ["id_source", "id_source_range", { last_id: "9007199254740992" }],
  ["transient", "transient_revision", { revision: 0 }],
  ["credential", "credential_name_given", { name: "" }],
  ["credential", "credential_name_given", { type: "" }],
  ["credential_policy", "credential_policy_singleton", { singleton: false }],
  ["credential_policy", "credential_policy_by_default", { by_default: "closed" }],
  ["keychain", "keychain_cache_type", { cache_type: "password" }],
  ["keychain", "keychain_scope_type", { scope_type: "catalog", execution_id: 10 }],
  ["keychain", "keychain_owner", { scope_type: "local" }],
  ["keychain", "keychain_owner", { scope_type: "shared" }],
  ["keychain", "keychain_access_count", { access_count: -1 }],
  ["result", "result_state", { state: "lost" }],
  ["result", "result_writing", { writing: "x" }],
  ["result", "result_store", { store: "tape", payload: null }],
  ["result", "result_scope", { scope: "forever" }],
  ["result", "result_payload", { store: "disk" }],
  ["result", "result_bytes", { bytes: -1 }],
  ["result", "result_sha256", { sha256: "x" }],
  ["bulk", "bulk_action", { action: "delete" }],
  ["bulk", "bulk_status", { status: "over" }],
  ["bulk", "bulk_counts", { done: 1, skipped: 1 }],
  ["bulk", "bulk_counts", { failed: -1 }],
  ["bulk", "bulk_lease", { worker: "s" }],
  ["bulk", "bulk_end", { status: "completed" }],
  ["bulk", "bulk_idempotency", { idempotency_key: "k" }],
  ["bulk", "bulk_end", { ended_at: NOW }],
  ["bulk_item", "bulk_item_state", { state: "over" }],
  ["wait", "wait_kind", { kind: "nothing" }],
  ["wait", "wait_signal", { name: "paid" }],
  ["signal", "signal_state", { state: "lost" }],
  ["signal", "signal_reached", { reached: -1 }],
  ["trigger", "trigger_kind", { kind: "moon" }],
  ["trigger", "trigger_due", { enabled: false, next_due_at: NOW }],
  ["trigger", "trigger_due", { kind: "webhook", next_due_at: NOW }],
  ["trigger", "trigger_decided", { decided_by: "s" }],
  ["trigger_fire", "trigger_fire_status", { status: "lost", execution_id: null, reason: "x" }],
  ["trigger_fire", "trigger_fire_started", { execution_id: null }],
  ["trigger_fire", "trigger_fire_started", { status: "skipped", reason: "x" }],
  ["trigger_fire", "trigger_fire_queued", { status: "queued", execution_id: null }],
  ["trigger_fire", "trigger_fire_queued", { wake_at: NOW }],
  ["trigger_fire", "trigger_fire_reason", { status: "skipped", execution_id: null }],
  ["trigger_delivery", "trigger_delivery_verdict", { verdict: "lost" }],
  ["trigger_delivery", "trigger_delivery_count", { count: 0 }],
  ["approval", "approval_status", { status: "lost", closed_at: NOW }],
  ["approval", "approval_end", { status: "approved" }],
  ["approval", "approval_end", { closed_at: NOW }],
  ["approval_decision", "approval_decision_word", { decision: "perhaps" }],
  ["statistic", "statistic_seconds", { seconds: 300 }],
  ["step_statistic", "step_statistic_seconds", { seconds: 60 }],
  ["bulk_item", "bulk_item_why", { state: "failed" }],
  ["bulk_item", "bulk_item_why", { code: "X" }],
  ["resource", "resource_kind", { kind: "document" }],
  ["resource", "resource_version", { version: 0 }],
  ["resource", "resource_path", { path: "" }],
  ["draft", "draft_kind", { kind: "mcp" }],
  ["catalog", "catalog_kind", { kind: "document" }],
  ["catalog", "catalog_version", { version: 0 }],
];

/** Changes that look odd and are right. */
const ACCEPTED: [table: string, what: string, change: Row][] = [
  ["execution", "a child", CHILD],
  ["execution", "a paused run", { status: "PAUSED" }],
  ["execution", "a failure", { status: "FAILED", ended_at: NOW, error: { code: "X" } }],
  ["execution", "a cancellation with its reason", { status: "CANCELLED", ended_at: NOW, error: { code: "CANCELLED" } }],
  ["execution", "a result", { status: "COMPLETED", ended_at: NOW, result: {}, progress: 100 }],
  ["execution", "a start with a key", { caller: "c", idempotency_key: "k", body_sha256: SHA256 }],
  ["command", "a claim", CLAIMED],
  ["command", "work under way", { ...CLAIMED, status: "RUNNING" }],
  ["command", "a command cancelled before any claim", { status: "CANCELLED", ended_at: NOW }],
  ["command", "an end", { status: "COMPLETED", attempt: 3, ended_at: NOW }],
  ["batch", "a failure", { state: "failed", code: "processing_error" }],
  ["batch", "processing", { state: "processing", processor: "s", lease_expires_at: NOW }],
  ["trigger", "a schedule that has a next time", { next_due_at: NOW }],
  ["trigger_fire", "a fire that waits for its turn", { status: "queued", execution_id: null, wake_at: NOW }],
  ["approval", "an approval that people have given", { status: "approved", closed_at: NOW }],
  ["keychain", "a local entry", { scope_type: "local", execution_id: 10 }],
  ["result", "a payload elsewhere", { store: "s3", payload: null }],
];

/** Inserts one row, and takes it back. */
async function insert(table: string, change: Row): Promise<void> {
  const row = { ...COHERENT[table], ...change };
  const undo = new Error("undo");
  const work = transaction(database, async ({ sql }) => {
    await sql`insert into ${sql(`flow.${table}`)} ${sql(row as Record<string, never>)}`;
    throw undo;
  });
  await work.catch((error: unknown) => {
    if (error !== undo) throw error;
  });
}

test("the rows that the refusals start from are coherent", async () => {
  // These have their one row.
  const single = ["id_source", "credential_policy"];
  for (const table of Object.keys(COHERENT).filter((name) => !single.includes(name))) await insert(table, {});
});

for (const [table, constraint, change] of REFUSED) {
  test(`${constraint} refuses ${JSON.stringify(change)}`, async () => {
    await assert.rejects(insert(table, change), { constraint_name: constraint });
  });
}

for (const [table, what, change] of ACCEPTED) {
  test(`${table} takes ${what}`, () => insert(table, change));
}

test("every check of the schema is tested here", async () => {
  const rows = await database.sql<{ name: string }[]>`
    select conname as name from pg_constraint
    where connamespace = 'flow'::regnamespace and contype = 'c' and conparentid = 0 and coninhcount = 0`;
  const tested = new Set(REFUSED.map(([, constraint]) => constraint));
  assert.deepEqual(
    rows.map(({ name }) => name).filter((name) => !tested.has(name)),
    [],
  );
});

test("an idempotency key is unique per caller, for executions and for batches", async () => {
  const undo = new Error("undo");
  for (const [table, id] of [
    ["execution", "execution_id"],
    ["batch", "request_id"],
  ] as const) {
    const row = (number: number, caller: string): Row => ({
      ...COHERENT[table],
      ...(table === "execution" && { root_execution_id: number, last_event_id: number }),
      [id]: number,
      caller,
      idempotency_key: "k",
      body_sha256: SHA256,
    });
    const work = transaction(database, async ({ sql }) => {
      const write = (values: Row) => sql`insert into ${sql(`flow.${table}`)} ${sql(values as Record<string, never>)}`;
      await write(row(1, "one"));
      await write(row(2, "another"));
      await assert.rejects(
        sql.savepoint(async () => {
          await write(row(3, "one"));
        }),
        { constraint_name: `${table}_for_idempotency` },
      );
      throw undo;
    });
    await assert.rejects(work, (error) => error === undo);
  }
});

test("a step's progress, a renewed lease and a heartbeat stay within their page and write no index", async () => {
  const undo = new Error("undo");
  const work = transaction(database, async ({ sql }) => {
    const write = (table: string, row: Row) =>
      sql`insert into ${sql(`flow.${table}`)} ${sql(row as Record<string, never>)}`;
    await write("execution", COHERENT["execution"] ?? {});
    await write("command", { ...COHERENT["command"], ...CLAIMED });
    await write("runtime", COHERENT["runtime"] ?? {});
    for (let step = 1; step <= 5; step += 1) {
      await sql`update flow.execution set progress = ${step}, last_event_id = ${11 + step}, updated_at = now()`;
      await sql`update flow.command set lease_expires_at = lease_expires_at + interval '120 seconds'`;
      await sql`update flow.runtime set heartbeat_at = clock_timestamp(), running = ${step}`;
    }
    for (const table of ["execution", "command", "runtime"]) {
      const [row] = await sql<[{ hot: number }]>`
        select pg_stat_get_xact_tuples_hot_updated(${`flow.${table}`}::regclass)::int as hot`;
      assert.equal(row.hot, 5, table);
    }
    throw undo;
  });
  await assert.rejects(work, (error) => error === undo);
});
