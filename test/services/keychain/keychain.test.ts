import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import {
  CATALOG_ID,
  entry,
  type KeychainBench,
  keychainBench,
  token,
  WORKER,
} from "../../support/database/keychain-rows.ts";

let bench: KeychainBench;
beforeEach(async () => {
  bench = await keychainBench(await openServiceDatabase());
});

const get = (...about: Parameters<typeof entry>) => bench.keychain.get(entry(...about), WORKER);
const set = (about: Parameters<typeof entry>, setting = token()) =>
  bench.keychain.set(entry(...about), setting, WORKER);
const statusOf = async (...about: Parameters<typeof entry>) => (await get(...about)).status;

test("an entry is read as it was set, and every read counts", async () => {
  const saved = await set(["api"], token("first", { ttlSeconds: 600 }));
  assert.deepEqual([saved.cacheKey, saved.ttlSeconds], [`api:${CATALOG_ID}:global`, 600]);
  const before = Date.now() - 5_000;
  for (const count of [1, 2, 3]) {
    const found = await get("api");
    assert.ok(found.status === "success");
    assert.deepEqual(found.data, { access_token: "first" });
    assert.equal(found.accessCount, count);
    assert.ok(found.accessedAt.getTime() > before);
    assert.ok(found.ttlSeconds > 590 && found.ttlSeconds <= 600);
    assert.equal(found.expiresAt.getTime(), saved.expiresAt.getTime());
    assert.deepEqual([found.credentialType, found.cacheType, found.autoRenew], ["oauth2", "secret", false]);
  }
});

test("setting again replaces the data and their time, and goes on counting", async () => {
  await set(["api"], token("first", { ttlSeconds: 600 }));
  await get("api");
  await set(["api"], token("second", { autoRenew: true }));
  const found = await get("api");
  assert.ok(found.status === "success");
  assert.deepEqual(found.data, { access_token: "second" });
  assert.deepEqual([found.accessCount, found.cacheType, found.autoRenew], [2, "token", true]);
  assert.ok(found.ttlSeconds > 86_000);
});

test("entries live for an hour when they are local and for a day otherwise, unless a time is given", async () => {
  const id = await bench.execution();
  assert.equal((await set(["l", "local", id])).ttlSeconds, 3_600);
  assert.equal((await set(["s", "shared", id])).ttlSeconds, 86_400);
  assert.equal((await set(["g"])).ttlSeconds, 86_400);
  const expiresAt = new Date(Date.now() + 60_000);
  const saved = await set(["g"], token("x", { expiresAt, ttlSeconds: 5 }));
  assert.equal(saved.expiresAt.getTime(), expiresAt.getTime());
  assert.ok(saved.ttlSeconds > 50 && saved.ttlSeconds <= 61);
});

test("what is stored holds no secret in the clear, neither data nor the request that renews them", async () => {
  const renewConfig = { endpoint: "https://idp", data: { client_secret: "c4nary-secret" } };
  await set(["api"], token("c4nary-token", { autoRenew: true, renewConfig }));
  const [row] = await bench.database.sql<{ text: string }[]>`select k::text as text from flow.keychain k`;
  assert.ok(row !== undefined && !row.text.includes("c4nary"));
  await bench.age("api", 1);
  const found = await get("api");
  assert.ok(found.status === "expired" && found.autoRenew);
  assert.deepEqual(found.renewConfig, renewConfig);
});

test("data of one row cannot be put into another", async () => {
  await set(["api"]);
  await set(["other"]);
  await bench.database.sql`
    update flow.keychain set data_encrypted = (select data_encrypted from flow.keychain where keychain_name = 'other')
    where keychain_name = 'api'`;
  await assert.rejects(get("api"), { code: "ENCRYPTION" });
});

test("an expired entry gives no data; with auto_renew it gives what renews it, and nothing else", async () => {
  await set(["plain"], token("x", { renewConfig: { endpoint: "https://idp" } }));
  await set(["renewed"], token("x", { autoRenew: true, renewConfig: { endpoint: "https://idp" } }));
  await set(["bare"], token("x", { autoRenew: true }));
  for (const name of ["plain", "renewed", "bare"]) await bench.age(name, 5);
  const plain = await get("plain");
  assert.deepEqual(Object.keys(plain).sort(), ["autoRenew", "cacheKey", "expiresAt", "status"]);
  assert.ok(plain.status === "expired" && Math.abs(plain.expiresAt.getTime() - Date.now() + 5_000) < 5_000);
  const renewed = await get("renewed");
  assert.ok(renewed.status === "expired" && renewed.autoRenew);
  assert.deepEqual(renewed.renewConfig, { endpoint: "https://idp" });
  const bare = await get("bare");
  assert.ok(bare.status === "expired" && bare.autoRenew && bare.renewConfig === undefined);
  await set(["renewed"], token("fresh", { autoRenew: true, ttlSeconds: 60 }));
  const fresh = await get("renewed");
  assert.ok(fresh.status === "success");
  assert.deepEqual(fresh.data, { access_token: "fresh" });
});

test("a local entry is read by its own execution alone: not by parent, child or sibling, nor without one", async () => {
  const root = await bench.execution();
  const tree = { parentExecutionId: root, rootExecutionId: root };
  const child = await bench.execution(tree);
  const sibling = await bench.execution(tree);
  const saved = await set(["api", "local", child]);
  assert.equal(saved.cacheKey, `api:${CATALOG_ID}:${child}`);
  assert.equal(await statusOf("api", "local", child), "success");
  for (const other of [root, sibling]) assert.equal(await statusOf("api", "local", other), "not_found");
  for (const scope of ["global", "shared"] as const) assert.equal(await statusOf("api", scope, child), "not_found");
  await assert.rejects(get("api", "local"), { code: "INVALID_INPUT" });
});

test("a shared entry is the tree's, whichever execution of it sets or reads; another tree has none", async () => {
  const root = await bench.execution();
  const tree = { parentExecutionId: root, rootExecutionId: root };
  const child = await bench.execution(tree);
  const grandchild = await bench.execution({ parentExecutionId: child, rootExecutionId: root });
  const stranger = await bench.execution();
  const saved = await set(["api", "shared", grandchild]);
  assert.equal(saved.cacheKey, `api:${CATALOG_ID}:shared:${root}`);
  for (const id of [root, child, grandchild]) {
    const found = await get("api", "shared", id);
    assert.equal(found.status, "success");
    assert.equal(found.cacheKey, saved.cacheKey);
  }
  assert.equal((await get("api", "shared", stranger)).cacheKey, `api:${CATALOG_ID}:shared:${stranger}`);
  assert.equal(await statusOf("api", "shared", stranger), "not_found");
  const [row] = await bench.database.sql`select execution_id, parent_execution_id from flow.keychain`;
  assert.deepEqual([row?.["execution_id"], row?.["parent_execution_id"]], [root, child]);
});

test("entries of one name in other scopes, playbooks and with odd names are other entries", async () => {
  const id = await bench.execution();
  const names = ["a", "a:1", "a:1:shared", "shared", "", "é:global"].filter((name) => name !== "");
  for (const name of names) {
    await set([name], token(`${name} global`));
    await set([name, "local", id], token(`${name} local`));
    await set([name, "shared", id], token(`${name} shared`));
  }
  assert.equal((await bench.keys()).length, names.length * 3);
  for (const name of names) {
    for (const scope of ["global", "local", "shared"] as const) {
      const found = await get(name, scope, id);
      assert.ok(found.status === "success");
      assert.deepEqual(found.data, { access_token: `${name} ${scope}` });
    }
  }
  assert.equal((await bench.keychain.get({ ...entry("a"), catalogId: "2" }, WORKER)).status, "not_found");
});

for (const status of ["COMPLETED", "FAILED", "CANCELLED"] as const) {
  test(`nothing is read or kept after the end (${status}) of its owner, before its rows are deleted too`, async () => {
    const root = await bench.execution();
    const child = await bench.execution({ parentExecutionId: root, rootExecutionId: root });
    await set(["mine", "local", child]);
    await set(["ours", "shared", child]);
    await bench.end(child, status);
    assert.equal(await statusOf("mine", "local", child), "not_found");
    assert.equal(await statusOf("ours", "shared", child), "success");
    await assert.rejects(set(["mine", "local", child]), { code: "CONFLICT" });
    await bench.end(root, status);
    assert.equal(await statusOf("ours", "shared", root), "not_found");
    assert.equal(await statusOf("ours", "shared", child), "not_found");
    await assert.rejects(set(["ours", "shared", child]), { code: "CONFLICT" });
    assert.equal((await bench.keys()).length, 2);
  });
}

test("an unknown playbook or execution has no entry, and none can be stored for it", async () => {
  const unknown = { ...entry("api"), catalogId: "77" };
  assert.equal((await bench.keychain.get(unknown, WORKER)).status, "not_found");
  await assert.rejects(bench.keychain.set(unknown, token(), WORKER), {
    code: "NOT_FOUND",
    message: /catalog entry 77/,
  });
  await assert.rejects(bench.keychain.list("77", { limit: 5 }), { code: "NOT_FOUND" });
  for (const scope of ["local", "shared"] as const) {
    assert.equal(await statusOf("api", scope, "4711"), "not_found");
    await assert.rejects(set(["api", scope, "4711"]), { code: "NOT_FOUND", message: /execution 4711/ });
  }
  assert.deepEqual(await bench.keys(), []);
});

test("data that violate the schema are refused with every failure, and nothing is kept", async () => {
  const schema = { fields: ["user", "port"], required: ["user", "port"], types: { port: "integer" } } as const;
  const setting = token("x", { schema: { ...schema, fields: [...schema.fields], required: [...schema.required] } });
  await assert.rejects(set(["api"], { ...setting, data: { port: 1.5, extra: "s3cret" } }), (error: Error) => {
    const { detail } = error as Error & { detail: unknown };
    assert.deepEqual(detail, {
      message: "Credential validation failed",
      errors: ["Missing required field: user", "Field 'port' must be integer, got number", "Unexpected fields: extra"],
    });
    return !error.message.includes("s3cret");
  });
  assert.deepEqual(await bench.keys(), []);
  await set(["api"], { ...setting, data: { user: "u", port: 1 } });
  assert.equal(await statusOf("api"), "success");
  assert.deepEqual(bench.violations, []);
});

test("data that do not match their schema any more are given with a warning that has no value", async () => {
  await set(["api"], token("s3cret", { schema: {} }));
  await bench.database.sql`update flow.keychain set schema = '{"required": ["user"]}'`;
  assert.equal(await statusOf("api"), "success");
  assert.deepEqual(bench.violations, [[`api:${CATALOG_ID}:global`, ["Missing required field: user"]]]);
});

test("data beyond the limit are refused, and nothing is kept", async () => {
  await assert.rejects(set(["api"], token("x".repeat(262_145))), { code: "TOO_LARGE" });
  assert.deepEqual(await bench.keys(), []);
});

test("deleting says whether there was an entry, and finds a shared one from anywhere in the tree", async () => {
  const root = await bench.execution();
  const child = await bench.execution({ parentExecutionId: root, rootExecutionId: root });
  await set(["api"]);
  await set(["api", "shared", root]);
  const remove = (...about: Parameters<typeof entry>) => bench.keychain.remove(entry(...about), WORKER);
  assert.equal(await remove("api", "shared", child), true);
  assert.equal(await remove("api", "shared", child), false);
  assert.equal(await remove("api", "local", "4711"), false);
  assert.equal(await statusOf("api"), "success");
  assert.equal(await remove("api"), true);
  assert.equal(await statusOf("api"), "not_found");
});

test("the list goes page by page and knows no data", async () => {
  const id = await bench.execution();
  for (const name of ["a", "b"]) await set([name]);
  await set(["a", "local", id], token("x", { autoRenew: true }));
  await bench.keychain.set({ ...entry("c"), catalogId: "2" }, token(), WORKER);
  const keys: string[] = [];
  let cursor: string | null | undefined;
  for (let pages = 1; cursor !== null; pages += 1) {
    const page = await bench.keychain.list(CATALOG_ID, { limit: 2, ...(cursor !== undefined && { cursor }) });
    assert.ok(pages <= 2);
    for (const item of page.items) {
      assert.ok(!JSON.stringify(item).includes("t0p"));
      keys.push(`${item.cacheKey} ${item.scope} ${item.autoRenew} ${item.accessCount}`);
    }
    cursor = page.nextCursor;
  }
  const shown = [`a:1:${id} local true 0`, "a:1:global global false 0", "b:1:global global false 0"];
  assert.deepEqual(keys.sort(), shown.sort());
});

test("who was given what stands in the audit log, and nothing else does", async () => {
  const id = await bench.execution();
  await set(["api"]);
  await get("api");
  await get("absent");
  await set(["old"], token("x", { ttlSeconds: 1 }));
  await bench.age("old", 5);
  await get("old");
  await set(["renewed", "local", id], token("x", { autoRenew: true, renewConfig: {} }));
  await bench.age("renewed", 5);
  await get("renewed", "local", id);
  await bench.keychain.remove(entry("api"), WORKER);
  await bench.keychain.remove(entry("api"), WORKER);
  const rows = await bench.database.sql<{ told: string; text: string }[]>`
    select action || ' ' || resource as told, log::text as text from auth.audit_log log order by audit_id`;
  assert.deepEqual(
    rows.map(({ told }) => told),
    [
      "keychain.write keychain/1/api",
      "keychain.read keychain/1/api",
      "keychain.write keychain/1/old",
      "keychain.write keychain/1/renewed",
      "keychain.read keychain/1/renewed",
      "keychain.delete keychain/1/api",
    ],
  );
  assert.ok(rows.every(({ text }) => !text.includes("t0p")));
});

test("many that read one entry at once are each counted, and each in the audit log", async () => {
  await set(["api"]);
  const found = await Promise.all(Array.from({ length: 300 }, () => get("api")));
  assert.ok(found.every((one) => one.status === "success" && one.data["access_token"] === "t0p"));
  const [row] = await bench.database.sql`
    select (select access_count from flow.keychain) as reads,
      (select count(*)::int from auth.audit_log where action = 'keychain.read') as told`;
  assert.deepEqual(row, { reads: 300, told: 300 });
});
