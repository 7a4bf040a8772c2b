import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import type { CredentialDefault } from "../../../src/schema/rules/credential-playbooks.ts";
import type { FlowError } from "../../../src/schema/words/errors.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { type Caller, createAudit } from "../../../src/services/access/audit.ts";
import { createCredentials } from "../../../src/services/credentials/credentials.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import { keyRing } from "../../support/engine/key-ring.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

const OPERATOR: Caller = { actorKind: "operator", rule: "access:operator", requestId: "7", address: "10.0.0.1" };
const WORKER: Caller = { actorKind: "worker", rule: "access:worker", requestId: "8", address: "10.0.0.2" };

function setup(keys = keyRing(), byDefault: CredentialDefault = "open") {
  const audit = createAudit({ database, days: 1, onLost: assert.fail });
  return createCredentials({ database, keys, audit, byDefault });
}

const basic = (name: string, password = "canary-password") => ({
  name,
  type: "basic" as const,
  data: { username: "u", password },
});

/** What the audit log says of a credential, oldest first. */
async function told(name: string) {
  const rows = await database.sql<{ line: string }[]>`
    select concat_ws(' ', actor_kind, action, result, rule, address, request_id, detail) as line
    from auth.audit_log where resource = ${`credential/${name}`} order by audit_id`;
  return rows.map(({ line }) => line);
}

test("a credential is created, read by name and by id, replaced under the same id, and deleted; the log records all of it", async () => {
  const credentials = setup();
  const { record, created } = await credentials.save({ ...basic("life"), tags: ["a", "a", "b"] }, OPERATOR);
  assert.deepEqual([created, record.tags, record.description], [true, ["a", "b"], null]);
  const read = await credentials.read("life", WORKER);
  assert.deepEqual(read, { record, data: basic("life").data });
  const replaced = await credentials.save({ ...basic("life", "new"), description: "d" }, OPERATOR);
  assert.deepEqual([replaced.created, replaced.record.id, replaced.record.tags], [false, record.id, []]);
  assert.deepEqual((await credentials.read(record.id, WORKER)).data, { username: "u", password: "new" });
  await credentials.remove("life", OPERATOR);
  await assert.rejects(credentials.read("life", WORKER), { code: "NOT_FOUND" });
  await assert.rejects(credentials.remove("life", OPERATOR), { code: "NOT_FOUND" });
  const operator = "access:operator 10.0.0.1 7";
  const worker = "access:worker 10.0.0.2 8";
  assert.deepEqual(await told("life"), [
    `operator credential.create allow ${operator}`,
    `worker credential.read allow ${worker}`,
    `operator credential.replace allow ${operator}`,
    `worker credential.read allow ${worker}`,
    `operator credential.delete allow ${operator}`,
    `worker credential.read error ${worker} {"reason": "not found"}`,
  ]);
});

test("neither the table nor the log holds the data in the clear, and a list decrypts nothing", async () => {
  const credentials = setup();
  await credentials.save(basic("hidden"), OPERATOR);
  await credentials.find("hidden");
  await credentials.list({ limit: 10 });
  const rows = await database.sql`
    select to_jsonb(c)::text as text from flow.credential c union all select to_jsonb(a)::text from auth.audit_log a`;
  assert.ok(rows.every(({ text }) => !String(text).includes("canary-password")));
  assert.deepEqual(await told("hidden"), ["operator credential.create allow access:operator 10.0.0.1 7"]);
});

test("data that lack what the type needs, or violate the schema, are refused with every message, and nothing is kept", async () => {
  const credentials = setup();
  const content = {
    name: "wrong",
    type: "basic" as const,
    data: { username: 1, other: "canary-value" },
    schema: { fields: ["username", "password"], types: { username: "string" as const } },
  };
  await assert.rejects(credentials.save(content, OPERATOR), (error: FlowError) => {
    assert.equal(error.code, "INVALID_SECRET");
    assert.deepEqual(error.detail, {
      message: "Credential validation failed",
      errors: [
        "Missing required field: password",
        "Field 'username' must be string, got integer",
        "Unexpected fields: other",
      ],
    });
    return !error.message.includes("canary-value");
  });
  await assert.rejects(credentials.find("wrong"), { code: "NOT_FOUND" });
});

test("with another key nothing is returned but an error that says so, and the log has it", async () => {
  await setup(keyRing("k1")).save(basic("other-key"), OPERATOR);
  const credentials = setup(keyRing("k2"));
  await assert.rejects(credentials.read("other-key", WORKER), {
    code: "ENCRYPTION",
    message: /Cannot read the credential 'other-key': .*the key 'k1'.*the server has k2/,
  });
  assert.match((await told("other-key")).at(-1) ?? "", /error .*"key_id": "k1"/);
});

test("the data of one credential cannot be put into the row of another", async () => {
  const credentials = setup();
  await credentials.save(basic("from"), OPERATOR);
  await credentials.save(basic("to"), OPERATOR);
  await database.sql`
    update flow.credential set data_encrypted = (select data_encrypted from flow.credential where name = 'from')
    where name = 'to'`;
  await assert.rejects(credentials.read("to", WORKER), { code: "ENCRYPTION", message: /belongs to another row/ });
});

test("of many that save one name at once one creates and the others replace", async () => {
  const credentials = setup();
  const saved = await Promise.all(
    Array.from({ length: 12 }, (_, index) => credentials.save(basic("race", `p${index}`), OPERATOR)),
  );
  assert.equal(saved.filter(({ created }) => created).length, 1);
  assert.equal(new Set(saved.map(({ record }) => record.id)).size, 1);
  assert.match(String((await credentials.read("race", WORKER)).data["password"]), /^p\d+$/);
});

test("saving and deleting one name at once leaves a credential that can be read, or none", async () => {
  const credentials = setup();
  const work = Array.from({ length: 30 }, (_, index) =>
    index % 3 === 0
      ? credentials.remove("churn", OPERATOR).catch((error: FlowError) => assert.equal(error.code, "NOT_FOUND"))
      : credentials.save(basic("churn", `p${index}`), OPERATOR).catch((error: FlowError) => {
          // Others changed it again and again in between.
          assert.equal(error.code, "UNAVAILABLE");
        }),
  );
  await Promise.all(work);
  await credentials.save(basic("churn", "last"), OPERATOR);
  assert.equal((await credentials.read("churn", WORKER)).data["password"], "last");
});

test("what is to be there at the start is added where it is absent, and kept where it is not", async () => {
  const credentials = setup();
  assert.equal(await credentials.addAbsent(basic("boot", "first"), OPERATOR), true);
  assert.equal(await credentials.addAbsent(basic("boot", "second"), OPERATOR), false);
  assert.equal((await credentials.read("boot", WORKER)).data["password"], "first");
  await assert.rejects(credentials.addAbsent({ ...basic("boot2"), data: {} }, OPERATOR), { code: "INVALID_SECRET" });
});

test("the list is in the order of names, in pages, and filters by type, tag and text", async () => {
  await database.sql`delete from flow.credential`;
  const credentials = setup();
  for (const [name, tags, description] of [
    ["l1", ["prod", "eu"], "Orders"],
    ["l2", ["prod"], "100% of it"],
    ["l3", [], "orders too"],
  ] as const) {
    await credentials.save({ ...basic(name), tags, description }, OPERATOR);
  }
  await credentials.save({ name: "l4", type: "bearer", data: { token: "t" } }, OPERATOR);
  const names = async (asked: Parameters<typeof credentials.list>[0]) =>
    (await credentials.list(asked)).items.map(({ name }) => name);
  assert.deepEqual(await names({ limit: 10 }), ["l1", "l2", "l3", "l4"]);
  assert.deepEqual(await names({ limit: 10, type: "bearer" }), ["l4"]);
  assert.deepEqual(await names({ limit: 10, tag: "prod" }), ["l1", "l2"]);
  assert.deepEqual(await names({ limit: 10, tag: "pro" }), []);
  assert.deepEqual(await names({ limit: 10, q: "ORDERS" }), ["l1", "l3"]);
  assert.deepEqual(await names({ limit: 10, q: "eu" }), ["l1"]);
  assert.deepEqual(await names({ limit: 10, q: "%" }), ["l2"]);
  const { items, nextCursor } = await credentials.list({ limit: 3 });
  assert.equal(items.length, 3);
  assert.deepEqual(
    await credentials
      .list({ limit: 3, cursor: nextCursor ?? "" })
      .then((page) => [page.items[0]?.name, page.nextCursor]),
    ["l4", null],
  );
  await assert.rejects(credentials.list({ limit: 3, cursor: "x" }), { code: "INVALID_INPUT" });
});

test("no odd name is a fault", async () => {
  const credentials = setup();
  for (const name of ["a\u0000b", "' or 1=1 --", "9999999999999999", "99999999999999999999", "\ud800", ""]) {
    await assert.rejects(credentials.find(name), { code: "NOT_FOUND" });
    await assert.rejects(credentials.read(name, WORKER), { code: "NOT_FOUND" });
    await assert.rejects(credentials.remove(name, OPERATOR), { code: "NOT_FOUND" });
  }
});

/** A credential with this meta, and how it is read for an execution. */
async function restricted(name: string, meta: JsonObject | null, byDefault?: CredentialDefault) {
  const credentials = setup(keyRing(), byDefault);
  await credentials.save({ name, type: "bearer", data: { token: "canary" }, meta }, OPERATOR);
  const read = (caller: Caller, executionId?: string) =>
    credentials.read(name, caller, executionId === undefined ? {} : { executionId });
  return { read };
}

async function execution(path: string): Promise<string> {
  const [row] = await database.sql<{ id: string }[]>`
    with id as (select coalesce(max(execution_id), 0) + 1 as id from flow.execution)
    insert into flow.execution (execution_id, root_execution_id, catalog_id, path, version, status, last_event_id)
    select id, id, 1, ${path}, 1, 'RUNNING', id from id
    returning execution_id as id`;
  return row?.id ?? "";
}

test("a credential for some playbooks is given to their executions alone, and refusals are in the audit log", async () => {
  const { read } = await restricted("some", { playbooks: ["system/**", "team/report"] });
  for (const path of ["system/login", "system/a/b", "team/report"]) {
    assert.deepEqual((await read(WORKER, await execution(path))).data, { token: "canary" });
  }
  for (const path of ["team/other", "team/system/login", "system", "SYSTEM/login"]) {
    const asked = read(WORKER, await execution(path));
    await assert.rejects(asked, { code: "FORBIDDEN", message: new RegExp(`not for playbook '${path}'`) });
  }
  await assert.rejects(read(WORKER), { code: "FORBIDDEN" });
  await assert.rejects(read(WORKER, "999999"), { code: "FORBIDDEN" });
  const rows = await database.sql`
    select from auth.audit_log where resource = 'credential/some' and result = 'deny' and detail ? 'execution_id'`;
  assert.equal(rows.length, 6);
});

test("an operator can read it directly, but for a playbook only if that playbook may", async () => {
  const { read } = await restricted("shown", { playbooks: ["system/**"] });
  assert.deepEqual((await read(OPERATOR)).data, { token: "canary" });
  await assert.rejects(read(OPERATOR, await execution("team/other")), { code: "FORBIDDEN" });
});

test("without a list it is for no playbook where the default is restricted, and an operator can read it", async () => {
  const id = await execution("team/any");
  for (const meta of [null, {}, { playbooks: null }]) {
    const { read } = await restricted("unsaid", meta, "restricted");
    const message =
      /for no playbook yet, and so not for playbook 'team\/any'.*flow credentials paths unsaid team\/any$/;
    await assert.rejects(read(WORKER, id), { code: "FORBIDDEN", message });
    await assert.rejects(read(WORKER), { code: "FORBIDDEN" });
    assert.deepEqual((await read(OPERATOR)).data, { token: "canary" });
  }
});

test("which playbooks may use it is said without its data, leaves the rest of its meta, and is in the audit log", async () => {
  const credentials = setup(keyRing(), "restricted");
  for (const meta of [null, { owner: "ops", playbooks: ["a"] }]) {
    await credentials.save({ name: "said", type: "bearer", data: { token: "canary" }, meta }, OPERATOR);
    const record = await credentials.setPlaybooks("said", ["team/**", "b"], OPERATOR);
    assert.deepEqual(record.playbooks, ["team/**", "b"]);
    assert.deepEqual(record.meta, { ...meta, playbooks: ["team/**", "b"] });
    assert.deepEqual((await credentials.read("said", OPERATOR)).data, { token: "canary" });
    assert.deepEqual((await credentials.setPlaybooks("said", [], OPERATOR)).playbooks, []);
  }
  assert.ok((await told("said")).some((line) => line.startsWith("operator credential.paths allow access:operator")));
  for (const name of ["unknown", "a\u0000b"])
    await assert.rejects(credentials.setPlaybooks(name, [], OPERATOR), { code: "NOT_FOUND" });
});

test("an open default gives it to every playbook without a list; with an invalid list none gets it", async () => {
  const id = await execution("team/any");
  for (const meta of [null, {}, { owner: "ops" }, { playbooks: null }]) {
    const { read } = await restricted("any", meta);
    assert.deepEqual((await read(WORKER, id)).data, { token: "canary" });
    assert.deepEqual((await read(WORKER)).data, { token: "canary" });
  }
  for (const playbooks of ["team/any", [], [7], { "team/any": true }]) {
    const { read } = await restricted("none", { playbooks });
    await assert.rejects(read(WORKER, id), { code: "FORBIDDEN" }, JSON.stringify(playbooks));
  }
});
