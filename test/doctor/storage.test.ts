import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { before, test } from "node:test";
import type { Database } from "../../src/repositories/database/database.ts";
import { readOnly } from "../../src/repositories/doctor/read-snapshot.ts";
import type { Finding } from "../../src/schema/api/doctor.ts";
import { createDiagnosis, type DiagnoseDeps } from "../../src/services/diagnosis/diagnose.ts";
import type { CheckResult } from "../../src/services/diagnosis/finding.ts";
import { DOCTOR_LIMITS, type DoctorLimits } from "../../src/services/diagnosis/limits.ts";
import { PSQL } from "../../src/services/diagnosis/psql.ts";
import {
  checkDatabase,
  checkDeadRows,
  checkSessions,
  checkVacuumBlockers,
} from "../../src/services/diagnosis/storage.ts";
import { open } from "../repositories/service-database.ts";
import { createServiceDatabase, createTestDatabase } from "../support/database/postgres.ts";

let url: string;
let database: Database;
before(async () => {
  ({ url } = await createServiceDatabase());
  database = open(url);
});

type Check = (reading: Parameters<typeof checkDeadRows>[0], limits: DoctorLimits) => Promise<CheckResult>;
async function findings(check: Check, limits: Partial<DoctorLimits> = {}): Promise<Finding[]> {
  const found = await readOnly(database, 5_000, (reading) => check(reading, { ...DOCTOR_LIMITS, ...limits }));
  return found.findings;
}

test("a transaction that does nothing is found with its session, and ending that session is what to do", async () => {
  const other = open(url, { connectionsMax: 1, applicationName: "forgetful" });
  // On a pool that has not connected, `reserve` waits for ever.
  await other.sql`select 1`;
  const forgotten = await other.sql.reserve();
  try {
    await forgotten`begin`;
    await forgotten`select txid_current()`;
    const found = await findings(checkVacuumBlockers, { idleTransactionMs: 0 });
    const [blocker] = found.filter(({ what }) => what.includes("forgetful"));
    assert.match(blocker?.what ?? "", /stays open in the session \d+ \(role postgres, forgetful, 127\.0\.0\.1\)$/);
    const statement = /SELECT pg_terminate_backend\((\d+)\)/.exec(blocker?.command ?? "");
    const [row] = await forgotten`select pg_backend_pid() as pid`;
    assert.equal(Number(statement?.[1]), row?.["pid"]);
    const long = await findings(checkVacuumBlockers, { idleTransactionMs: 3_600_000 });
    assert.deepEqual(
      long.filter(({ what }) => what.includes("forgetful")),
      [],
    );
  } finally {
    await forgotten`rollback`;
    forgotten.release();
  }
});

test("a table full of dead rows is found, with the statement that removes them", async () => {
  // One session: what it has counted it tells when it is asked to.
  const { sql } = open(url, { connectionsMax: 1 });
  // Nothing may clean up before we look.
  await sql`alter table flow.transient set (autovacuum_enabled = false)`;
  await sql`
    insert into flow.transient (bucket, key, value) select 'b', 'k' || n, '' from generate_series(1, 200) as n`;
  await sql`delete from flow.transient where key <> 'k1'`;
  await sql`select pg_stat_force_next_flush()`;
  const found = await findings(checkDeadRows, { deadRowsMin: 100 });
  const [table] = found.filter(({ what }) => what.includes("flow.transient"));
  assert.equal(table?.what, "The table flow.transient has 199 dead rows beside 1 live ones");
  assert.match(table?.command ?? "", /VACUUM \(ANALYZE\) flow\.transient/);
  assert.deepEqual(await findings(checkDeadRows), [], "so few are nothing");
});

test("events in the log's default partition say that the partition of their month is missing", async () => {
  const stray = async () => (await findings(checkDatabase)).filter(({ check }) => check === "log_partitions");
  assert.deepEqual(await stray(), []);
  await database.sql`
    insert into flow.event (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status)
    values (9007199254740990, 1, 1, 'step.done', 'a', 'a', 'step', 'COMPLETED')`;
  assert.equal((await stray()).length, 1);
});

test("sessions that end soon are a notice; a thousand expired ones show that the clean-up is missing", async () => {
  assert.deepEqual(await findings(checkSessions), []);
  const { sql } = database;
  await sql`insert into auth.users (email, display_name) values ('a@example.com', 'A')`;
  const session = (count: number, ends: string) => sql`
    insert into auth.sessions (token_sha256, user_id, created_at, last_seen_at, idle_expires_at, expires_at)
    select md5(n || ${ends}::text) || md5(${ends}::text || n), (select user_id from auth.users), now() - interval '3 days',
      now() - interval '3 days', now() + ${ends}::interval, now() + ${ends}::interval
    from generate_series(1, ${count}::int) as n`;
  await session(1, "10 minutes");
  await session(1_000, "-2 days");
  const found = await findings(checkSessions);
  assert.deepEqual(
    found.map(({ level, count }) => [level, count]),
    [
      ["notice", 1],
      ["anomaly", 1_000],
    ],
  );
});

async function diagnosed(more: Partial<DiagnoseDeps>, check: string): Promise<Finding[] | undefined> {
  const diagnosis = await createDiagnosis({ database, keyIds: undefined, ...more })();
  if (!diagnosis.checks.includes(check)) return undefined;
  return diagnosis.findings.filter((found) => found.check === check);
}

test("secrets whose key is missing are found, and the check is left out where the keys are unknown", async () => {
  await database.sql`
    insert into flow.credential (id, name, type, data_encrypted) values (1, 'c', 'custom', 'v1.lost-key.AAAA')`;
  const [found] = (await diagnosed({ keyIds: ["k1"] }, "encryption_keys")) ?? [];
  assert.match(found?.what ?? "", /^1 secret is encrypted with the key 'lost-key'/);
  assert.deepEqual(await diagnosed({ keyIds: ["k1", "lost-key"] }, "encryption_keys"), []);
  assert.equal(await diagnosed({}, "encryption_keys"), undefined);
});

test("credentials that every playbook may use are a notice, by the default of the service or by their list", async () => {
  const { sql } = database;
  await sql`delete from flow.credential`;
  const found = async (credentialsDefault?: "open") =>
    ((await diagnosed({ credentialsDefault }, "open_credentials")) ?? []).map(({ level, what, command }) => [
      ...[level, what, command],
    ]);
  const insert = (id: number, name: string, meta: string | null) => sql`
    insert into flow.credential (id, name, type, data_encrypted, meta) values (${id}, ${name}, 'custom', 'x', ${meta}::text::jsonb)`;
  await insert(2, "unsaid", null);
  await insert(3, "team", '{"playbooks": ["team/**"]}');
  await insert(4, "none", '{"playbooks": []}');
  assert.deepEqual(await found(), []);
  const command = "flow credentials paths unsaid 'PATH/**'";
  assert.deepEqual(await found("open"), [["notice", "Every playbook may use 1 credential: unsaid", command]]);
  await insert(5, "all", '{"playbooks": ["x", "**"]}');
  assert.deepEqual(await found(), [
    ["notice", "Every playbook may use 1 credential: all", "flow credentials paths all 'PATH/**'"],
  ]);
  assert.equal((await found("open"))[0]?.[1], "Every playbook may use 2 credentials: all, unsaid");
});

test("system playbooks with tasks that run in no server are a notice, until a pool that names their folder has them", async () => {
  const { sql } = database;
  const found = async (hasOwn?: boolean) =>
    (await diagnosed(hasOwn === undefined ? {} : { hasOwn }, "system_playbooks"))?.map(({ level, what, command }) => [
      ...[level, what, command],
    ]);
  const register = async (id: number, path: string, tools: unknown[], version = 1) => {
    const payload = { kind: "Playbook", workflow: tools.map((tool, at) => ({ step: `s${at}`, tool })) };
    await sql`insert into flow.catalog (catalog_id, path, version, kind, content, payload, metadata)
      values (${id}, ${path}, ${version}, 'playbook', 'x', ${JSON.stringify(payload)}::text::jsonb, '{}')`;
    await sql`insert into flow.resource (path, kind, version, catalog_id, content_sha256) values (${path}, 'playbook', ${version}, ${id}, 'x')
      on conflict (path) do update set version = ${version}, catalog_id = ${id}`;
  };
  await register(901, "system/calls", [
    { kind: "http" },
    { kind: "postgres" },
    { kind: "playbook", path: "system/code" },
  ]);
  await register(902, "team/code", [{ kind: "python" }]);
  await register(903, "systematic/code", [{ kind: "python" }]);
  assert.deepEqual(await found(), []);
  await register(904, "system/code", [
    { kind: "http" },
    [{ a: { kind: "shell" } }, { b: { kind: "script" } }, { c: { kind: "shell" } }],
  ]);
  const command = "flow pools create NAME --paths system/code";
  const one = "1 system playbook has tasks that run in no server: system/code (script, shell)";
  assert.deepEqual(await found(), [["notice", one, command]]);
  assert.equal(await found(false), undefined, "workers run them where servers have no token");
  for (let id = 910; id < 915; id += 1) await register(id, `api_integration/x${id}`, [{ kind: "transfer" }]);
  assert.match(
    String((await found())?.[0]?.[1]),
    /^6 system playbooks have .*: api_integration\/x910 \(transfer\), .* and 1 more$/,
  );
  const pool = (name: string, paths: string[]) => sql`
    insert into flow.worker_pool (name, paths, token_sha256, created_by)
    values (${name}, ${paths}, ${name.padEnd(64, "0").replace(/[^0-9a-f]/g, "0")}, 'x')`;
  await pool("aa", ["**"]);
  assert.equal((await found())?.length, 1, "a pool for everything does not mean them");
  await pool("bb", ["api_integration/**"]);
  assert.deepEqual(await found(), [["notice", one, command]]);
  await pool("cc", ["system/c*"]);
  assert.deepEqual(await found(), []);
  await sql`update flow.worker_pool set revoked_at = now() where name = 'cc'`;
  assert.deepEqual(await found(), [["notice", one, command]]);
  await register(905, "system/code", [{ kind: "noop" }], 2);
  assert.deepEqual(await found(), [], "the newest version counts");
});

test("users with roles who are bound to no identity provider and never logged in are a notice", async () => {
  const { sql } = database;
  await sql`delete from auth.users`;
  const found = async () => ((await diagnosed({}, "unbound_users")) ?? []).map(({ level, what }) => [level, what]);
  await sql`insert into auth.users (email, display_name, issuer, subject)
    values ('open@x.example', 'O', null, null), ('bound@x.example', 'B', 'https://idp.example', null),
      ('in@x.example', 'I', 'https://idp.example', 's'), ('without@x.example', 'W', null, null)`;
  assert.deepEqual(await found(), []);
  await sql`insert into auth.user_roles (user_id, role_id)
    select user_id, (select role_id from auth.roles where name = 'viewer') from auth.users where email <> 'without@x.example'`;
  const what = "1 user with roles who never logged in is bound to no identity provider: open@x.example";
  assert.deepEqual(await found(), [["notice", what]]);
});

test("a full disk of the embedded database is found; one on another machine is not looked at", async () => {
  const disk = (freeBytes: number) => () => Promise.resolve({ folder: "/data", freeBytes, totalBytes: 100e9 });
  const [found] = (await diagnosed({ disk: disk(500e6) }, "disk")) ?? [];
  assert.equal(found?.what, "The disk of the embedded database (/data) has 477 MiB left");
  assert.deepEqual(await diagnosed({ disk: disk(50e9) }, "disk"), []);
  assert.equal(await diagnosed({ disk: () => Promise.resolve(undefined) }, "disk"), undefined);
});

test("a broker that is away is found, and no broker is nothing", async () => {
  assert.equal((await diagnosed({ brokerIsUp: () => false }, "broker"))?.length, 1);
  assert.deepEqual(await diagnosed({ brokerIsUp: () => true }, "broker"), []);
  assert.equal(await diagnosed({}, "broker"), undefined);
});

test("a check that fails is reported, and the others run", async () => {
  const disk = () => Promise.reject(new Error("statfs does not like this"));
  const diagnosis = await createDiagnosis({ database, keyIds: undefined, disk })();
  assert.deepEqual(diagnosis.skipped, [{ check: "disk", why: "statfs does not like this" }]);
  assert.ok(diagnosis.checks.includes("projection"));
  const [missed] = diagnosis.findings.filter(({ check }) => check === "skipped_checks");
  assert.deepEqual([missed?.level, missed?.what], ["anomaly", "1 check could not be made: disk"]);
});

test("a database that is not the service's is no healthy one: nothing could be looked at", async () => {
  const { url: empty } = await createTestDatabase();
  await assert.rejects(createDiagnosis({ database: open(empty), keyIds: undefined })(), {
    code: "SCHEMA_MISMATCH",
    message: /Nothing could be looked at: .*Is it the database of the service/,
  });
});

test("a database that cannot be reached ends the diagnosis", async () => {
  const away = open("postgres://flow:hidden@127.0.0.1:1/flow", { connectSeconds: 1 });
  await assert.rejects(createDiagnosis({ database: away, keyIds: undefined })(), { code: "UNAVAILABLE" });
});

test("the commands for the database give psql the address without its password", async () => {
  const folder = await mkdtemp(join(tmpdir(), "flow-psql-"));
  try {
    // Says what every user of the machine could read.
    const program = join(folder, "psql");
    await writeFile(program, '#!/bin/sh\nprintf "%s\\n" "$@"; cat\n', { mode: 0o755 });
    const given = async (FLOW_DATABASE_URL: string) => {
      const child = spawn("/bin/sh", ["-c", `${PSQL} -c 'select 1' <<'SQL'\nselect 2;\nSQL`], {
        env: { PATH: `${folder}:${process.env["PATH"]}`, FLOW_DATABASE_URL },
        stdio: ["ignore", "pipe", "inherit"],
      });
      return (await text(child.stdout)).split("\n");
    };
    for (const [address, expected] of [
      [
        "postgres://flow:s3cr%2Ft:x@db.example:5433/flow?sslmode=require",
        "postgres://flow@db.example:5433/flow?sslmode=require",
      ],
      ["postgresql://flow:s3cr@t@[::1]/flow", "postgresql://flow@[::1]/flow"],
      ["postgres://db/flow?user=flow&password=s3cret&sslmode=disable", "postgres://db/flow?user=flow&sslmode=disable"],
      ["postgres:///flow?host=/run/postgresql&password=s3cret", "postgres:///flow?host=/run/postgresql&"],
      ["postgres://:s3cret@db:5432/flow", "postgres://@db:5432/flow"],
      ["postgres://flow@db:5432/a:b@c", "postgres://flow@db:5432/a:b@c"],
      ["postgres://db:5432/flow", "postgres://db:5432/flow"],
    ]) {
      assert.deepEqual(await given(address as string), [expected, "-c", "select 1", "select 2;", ""]);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
