import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Database } from "../../src/repositories/database/database.ts";
import { runFlow } from "../cli/in-process.ts";
import { open } from "../repositories/service-database.ts";
import { pastTriggers } from "../support/database/past-triggers.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { createServiceRole } from "../support/database/service-role.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { type Body, playbook } from "../support/service/api.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { answerOf, sendTo } from "../support/service/server-calls.ts";
import { startServerProcess } from "../support/service/service-process.ts";
import { addUser, allow } from "../support/service/users.ts";

/*
 * What becomes of the audit log of servers in processes of their own, that are killed, run side by side, and whose log is changed
 * behind their back: each decision has its row, and `flow audit verify` finds what was done to the rows.
 */

const OPERATOR = "operator-token-of-the-attacks-1";
const WORKER = "worker-token-of-the-attacks-22";

/** A database whose servers have an account of their own, as docs/operations.md says. */
async function openService(t: TestContext) {
  const { url } = await createServedDatabase();
  const owner = open(url);
  const account = await createServiceRole(owner, url);
  t.after(() => account.drop());
  const folder = await folderWith(t, {});
  const environment = {
    ...ownDatabase(account.url),
    FLOW_DATABASE_DIRECT_URL: url,
    FLOW_SERVER_TOKEN: OPERATOR,
    FLOW_WORKER_TOKEN: WORKER,
    FLOW_PURE_STEPS: "workers",
  };
  return {
    folder,
    owner,
    accountUrl: account.url,
    server: () => startServerProcess(t, { folder, environment }),
    /** `flow audit verify` against a server. */
    async verify(server: { url: string }, ...args: string[]) {
      const environment = { FLOW_SERVER_URL: server.url, FLOW_SERVER_TOKEN: OPERATOR };
      return await runFlow(folder, ["audit", "verify", ...args], environment);
    },
  };
}

type Service = Awaited<ReturnType<typeof openService>>;

const operate = (server: { url: string }, method: string, path: string, body?: unknown) =>
  answerOf(server.url, OPERATOR, method, path, body);

const register = (server: { url: string }, path: string) =>
  operate(server, "POST", "/api/catalog/register", { content: playbook(path) });

/** Executions, and the rows of starts that were allowed: ids of both, in order. */
async function startsOf({ sql }: Database): Promise<[executions: string[], rows: string[]]> {
  const executions = await sql<{ id: string }[]>`select execution_id::text as id from flow.execution order by 1`;
  const rows = await sql<{ id: string }[]>`
    select execution_id::text as id from auth.audit_log
    where action = 'playbook.execute' and result = 'allow' and actor_kind = 'operator' order by 1`;
  return [executions.map(({ id }) => id), rows.map(({ id }) => id)];
}

/** The starts that servers answer, by their ids. */
function createAnswered() {
  const told = new EventEmitter();
  const ids: string[] = [];
  return {
    ids,
    add(id: string) {
      ids.push(id);
      told.emit("answer");
    },
    /** Resolves when so many more have been answered. */
    async more(count: number) {
      for (const until = ids.length + count; ids.length < until; ) await once(told, "answer");
    },
  };
}

type Answered = ReturnType<typeof createAnswered>;

/** Starts executions at a server until it no longer answers. */
async function startUntilKilled(server: { url: string }, answered: Answered): Promise<void> {
  for (;;) {
    try {
      const { execution_id } = await operate(server, "POST", "/api/execute", { path: "team/a" });
      answered.add(String(execution_id));
    } catch (error) {
      assert.ok(error instanceof TypeError, `${error}`);
      return;
    }
  }
}

test("two servers that are killed between starts: each execution has its row and each row its execution, and no chain is broken", async (t) => {
  const service = await openService(t);
  let last = await service.server();
  await register(last, "team/a");
  const answered = createAnswered();
  // Killed at different moments: after the first answer, among many, and while both servers write.
  for (const count of [1, 40, 90]) {
    // A test of its own: a machine that is busy may take half a minute for a round.
    await t.test(`after ${count} answers`, async () => {
      const other = await service.server();
      const calls = [last, other].flatMap((server) => [1, 2, 3].map(() => startUntilKilled(server, answered)));
      await answered.more(count);
      await Promise.all([last.end("SIGKILL"), other.end("SIGKILL")]);
      await Promise.all(calls);
      last = await service.server();
    });
  }
  const [executions, rows] = await startsOf(service.owner);
  assert.deepEqual(rows, executions);
  const { ids } = answered;
  assert.ok(ids.length >= 131 && ids.every((id) => rows.includes(id)), "an answered start has no row");
  const whole = await service.verify(last);
  assert.equal(whole.code, 0, whole.stdout + whole.stderr);
});

test("a registration that was answered has its row, though the server is killed at once", async (t) => {
  const service = await openService(t);
  const server = await service.server();
  await register(server, "team/b");
  await server.end("SIGKILL");
  const rows = await service.owner.sql`
    select actor_kind, result from auth.audit_log where action = 'playbook.modify' and resource = 'playbook/team/b'`;
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [{ actor_kind: "operator", result: "allow" }],
  );
});

test("what a worker reads in the name of a command is a row with the worker, the execution, the command and the claim", async (t) => {
  const service = await openService(t);
  const server = await service.server();
  await register(server, "team/a");
  const call = async (method: string, path: string, body?: unknown, headers = {}) => {
    const reply = await sendTo(server.url, WORKER, method, path, body, headers);
    assert.equal(reply.status, 200, `${method} ${path}: ${JSON.stringify(reply.body)}`);
    return reply.body;
  };
  const { worker_secret } = await call("POST", "/api/worker/pool/register", { name: "w-7", capacity: 1 });
  const own = { "x-flow-worker": String(worker_secret) };
  const { execution_id } = await operate(server, "POST", "/api/execute", { path: "team/a" });
  // Claimed, given back and claimed again: the row says which claim it was.
  const claim = async () => {
    const ask = { worker: "w-7", limit: 1, wait_ms: 10_000 };
    const { commands } = await call("POST", "/api/commands/claim", ask, own);
    return (commands as Body[])[0] ?? {};
  };
  const first = await claim();
  await call("POST", "/api/worker/pool/deregister", { name: "w-7" }, own);
  const again = await call("POST", "/api/worker/pool/register", { name: "w-7", capacity: 1 });
  own["x-flow-worker"] = String(again["worker_secret"]);
  const second = await claim();
  assert.deepEqual([second["command_id"], second["attempt"]], [first["command_id"], Number(first["attempt"]) + 1]);
  const claimed = { "x-flow-claim": String(second["claim_secret"]) };
  await call("GET", `/api/executions/${execution_id}/sealing-key`, undefined, claimed);
  const stale = { "x-flow-claim": String(first["claim_secret"]) };
  const refused = await sendTo(
    server.url,
    WORKER,
    "GET",
    `/api/executions/${execution_id}/sealing-key`,
    undefined,
    stale,
  );
  assert.equal(refused.status, 403);
  await server.end("SIGTERM");
  const rows = await service.owner.sql<Body[]>`
    select actor_kind, actor, action, resource, result, execution_id, command_id, attempt from auth.audit_log
    where actor_kind = 'worker' order by audit_id`;
  const what = { actor_kind: "worker", action: rows[0]?.["action"], resource: `execution/${execution_id}` };
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [
      {
        ...what,
        actor: "w-7",
        result: "allow",
        execution_id,
        command_id: second["command_id"],
        attempt: second["attempt"],
      },
      { ...what, actor: null, result: "deny", execution_id: null, command_id: null, attempt: null },
    ],
  );
});

test("refusals stand alone, and callers without a token are one row with their number", async (t) => {
  const service = await openService(t);
  const server = await service.server();
  await register(server, "team/a");
  const user = await addUser(service.owner);
  await allow(service.owner, user, [{ allow: "team/**", can: ["execute"] }]);
  const session = { "x-flow-session": user.tokenSha256, "x-flow-address": "203.0.113.1" };
  const asUser = (path: string, body: unknown) => sendTo(server.url, OPERATOR, "POST", path, body, session);
  assert.equal((await asUser("/api/execute", { path: "team/a", wait_ms: 1 })).status, 403);
  assert.equal((await asUser("/api/execute", { path: "other/a" })).status, 403);
  assert.equal((await asUser("/api/execute", { path: "team/a" })).status, 200);
  for (let index = 0; index < 300; index += 1) {
    // More wrong tokens than these would be answered slowly.
    const headers = index < 5 ? { authorization: `Bearer wrong-${index}` } : {};
    const reply = await fetch(`${server.url}/api/executions/${index}`, { headers });
    await reply.arrayBuffer();
    assert.equal(reply.status, 401);
  }
  const login = { idp_domain: "idp.example", code: "UNAUTHENTICATED", reason: "its time is over" };
  await answerOf(server.url, OPERATOR, "POST", "/api/auth/sessions/refused", login);
  await server.end("SIGTERM");
  const { sql } = service.owner;
  const mixed = await sql`
    select request_id from auth.audit_log where request_id is not null group by request_id
    having bool_or(result = 'deny') and bool_or(result = 'allow')`;
  assert.deepEqual([...mixed], []);
  const rows = await sql<{ told: string }[]>`
    select concat_ws(' ', actor_kind, action, resource, result, address, detail->>'count') as told from auth.audit_log
    where actor_kind <> 'operator' order by 1`;
  const [anonymous = "", ...others] = rows.map(({ told }) => told);
  assert.match(anonymous, /^anonymous authenticate \S+ deny (127\.0\.0\.1|::ffff:127\.0\.0\.1|::1) 300$/);
  assert.deepEqual(others, [
    "anonymous session.open session deny 127.0.0.1",
    "user playbook.execute playbook/other/a deny 203.0.113.1",
    "user playbook.execute playbook/team/a allow 203.0.113.1",
    "user playbook.view playbook/team/a deny 203.0.113.1",
  ]);
});

test("the servers' account can change no row; what the tables' owner does to rows is found, and a cut end by the heads of before", async (t) => {
  const service = await openService(t);
  const server = await service.server();
  await register(server, "team/a");
  for (let count = 0; count < 12; count += 1) await operate(server, "POST", "/api/execute", { path: "team/a" });
  const asServer = open(service.accountUrl);
  for (const statement of [
    "delete from auth.audit_log",
    "update auth.audit_log set actor_kind = 'worker'",
    "update auth.audit_chain set last_seq = last_seq - 1",
    "alter table auth.audit_log disable trigger user",
    "truncate auth.audit_log",
  ]) {
    await assert.rejects(asServer.sql.unsafe(statement), { code: "42501" }, statement);
  }
  const heads = join(service.folder, "heads.json");
  const whole = await service.verify(server, "--json");
  assert.equal(whole.code, 0, whole.stderr);
  await writeFile(heads, whole.stdout);

  await tamperAndVerify(service, server, {
    deleted: ["delete from auth.audit_log where chain_seq = 4", /^missing: row 4 of chain 1 is missing$/m],
    changed: [
      "update auth.audit_log set resource = 'playbook/x' where chain_seq = 5",
      /^changed: row \d+ \(chain 1, place 5\)/m,
    ],
    added: [
      `insert into auth.audit_log (actor_kind, action, resource, rule, result) values ('operator', 'a', 'b', 'c', 'allow')`,
      /^unchained: /m,
    ],
    "added at the end of a chain": [
      `insert into auth.audit_log (actor_kind, action, resource, rule, result, chain, chain_seq, previous_hash, hash)
       select 'operator', 'a', 'b', 'c', 'allow', 1, last_seq + 1, last_hash, repeat('0', 64) from auth.audit_chain where chain = 1;
       update auth.audit_chain set last_seq = last_seq + 1, last_hash = repeat('0', 64) where chain = 1`,
      /^changed: row \d+ \(chain 1, place \d+\)/m,
    ],
  });
  // The end of a chain, with its head put back: by itself the log is whole.
  const cut = `delete from auth.audit_log where chain = 1 and chain_seq > 9;
    update auth.audit_chain set last_seq = 9,
      last_hash = (select hash from auth.audit_log where chain = 1 and chain_seq = 9) where chain = 1`;
  await pastTriggers(service.owner, cut);
  assert.equal((await service.verify(server)).code, 0);
  const found = await service.verify(server, "--heads", heads);
  assert.equal(found.code, 1, found.stdout);
  assert.match(found.stdout, /^missing: /m);
});

/** Does each of these to the log as its owner, expects what `flow audit verify` says, and puts the log back. */
async function tamperAndVerify(
  service: Service,
  server: { url: string },
  attacks: Readonly<Record<string, readonly [statement: string, says: RegExp]>>,
): Promise<void> {
  const kept =
    "create table kept_log as select * from auth.audit_log; create table kept_chain as select * from auth.audit_chain";
  const back = `
    delete from auth.audit_log; insert into auth.audit_log overriding system value select * from kept_log; drop table kept_log;
    delete from auth.audit_chain; insert into auth.audit_chain select * from kept_chain; drop table kept_chain`;
  for (const [name, [statement, says]] of Object.entries(attacks)) {
    await pastTriggers(service.owner, `${kept}; ${statement}`);
    const { code, stdout } = await service.verify(server);
    assert.equal(code, 1, `a row that was ${name} is not found`);
    assert.match(stdout, says, name);
    await pastTriggers(service.owner, back);
    assert.equal((await service.verify(server)).code, 0);
  }
}
