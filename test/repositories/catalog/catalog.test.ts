import assert from "node:assert/strict";
import { before, test } from "node:test";
import {
  findById,
  findNewest,
  findVersion,
  insertCatalogEntry,
  listAgents,
  listResources,
  listVersions,
  type NewCatalogEntry,
} from "../../../src/repositories/catalog/catalog.ts";
import { type Database, transaction } from "../../../src/repositories/database/database.ts";
import { reserveIds } from "../../../src/repositories/database/ids.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

/** Registers a document; everything that is not said is coherent. */
async function register(path: string, more: Partial<NewCatalogEntry> = {}, at: Database = database) {
  const [catalogId = ""] = await reserveIds(at, 1);
  const name = path.split("/").at(-1) ?? path;
  const content = more.content ?? `apiVersion: flow/v2\nmetadata: {name: ${name}}\n`;
  const metadata = { name, path };
  return insertCatalogEntry(at, {
    catalogId,
    path,
    kind: "playbook",
    content,
    payload: JSON.stringify({ metadata }),
    metadata,
    ...more,
  });
}

test("the first registration of a path is version 1, each further one the next", async () => {
  const first = await register("versions/one");
  const second = await register("versions/one");
  assert.deepEqual([first.version, second.version], [1, 2]);
  assert.deepEqual([first.unchanged, second.unchanged], [false, false]);
  assert.notEqual(first.catalogId, second.catalogId);
  assert.equal((await findNewest(database, "versions/one"))?.catalogId, second.catalogId);
});

test("an entry is read back as it was written: by path, by version, by id", async () => {
  const payload = { metadata: { name: "größe" }, workflow: [{ step: "end" }] };
  const written = await register("read/back", {
    content: "text\r\nwith  spaces",
    payload: JSON.stringify(payload),
    kind: "agent",
  });
  const expected = {
    catalogId: written.catalogId,
    path: "read/back",
    version: 1,
    kind: "agent",
    metadata: { name: "back", path: "read/back" },
    createdAt: written.createdAt,
    content: "text\r\nwith  spaces",
    payload,
  };
  const isStarted = { pausedAt: null, pausedBy: null, pauseReason: null };
  assert.deepEqual(await findNewest(database, "read/back"), { ...expected, ...isStarted });
  assert.deepEqual(await findVersion(database, "read/back", 1), expected);
  assert.deepEqual(await findById(database, written.catalogId), expected);
});

test("what was never registered is undefined, not an error", async () => {
  await register("known");
  assert.equal(await findNewest(database, "unknown"), undefined);
  assert.equal(await findNewest(database, "Known"), undefined);
  assert.equal(await findVersion(database, "known", 2), undefined);
  assert.equal(await findById(database, "1"), undefined);
  assert.deepEqual(await listVersions(database, "unknown", { limit: 10 }), { items: [] });
});

test("registrations of one path at the same time get consecutive versions", async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => register("busy")));
  const versions = all.map(({ version }) => version).sort((left, right) => left - right);
  assert.deepEqual(
    versions,
    Array.from({ length: 20 }, (_, index) => index + 1),
  );
  const { items } = await listVersions(database, "busy", { limit: 100 });
  assert.equal(items.length, 20);
  const newest = all.find(({ version }) => version === 20);
  assert.equal((await findNewest(database, "busy"))?.catalogId, newest?.catalogId);
});

test("if changed: the same text and kind give the version that is there", async () => {
  const first = await register("same", { content: "a" });
  const again = await register("same", { content: "a", ifChanged: true });
  assert.deepEqual(again, { ...first, unchanged: true });
  assert.equal((await listVersions(database, "same", { limit: 10 })).items.length, 1);
});

test("if changed: another text, another kind, and a text of an older version are changes", async () => {
  await register("differs", { content: "a", ifChanged: true });
  const versions = [
    await register("differs", { content: "b", ifChanged: true }),
    await register("differs", { content: "b", kind: "agent", ifChanged: true }),
    await register("differs", { content: "a", kind: "agent", ifChanged: true }),
  ].map(({ version }) => version);
  assert.deepEqual(versions, [2, 3, 4]);
});

test("if changed, many at once: one version is made", async () => {
  const all = await Promise.all(Array.from({ length: 10 }, () => register("once", { ifChanged: true })));
  assert.equal(all.filter(({ unchanged }) => !unchanged).length, 1);
  assert.deepEqual(new Set(all.map(({ version }) => version)), new Set([1]));
});

test("a registration that is rolled back leaves no version and no gap", async () => {
  await register("rolled/back");
  const fault = new Error("no");
  const work = transaction(database, async (tx) => {
    const [catalogId = ""] = await reserveIds(database, 1);
    const entry = { catalogId, path: "rolled/back", content: "x", payload: "{}", metadata: {} };
    assert.equal((await insertCatalogEntry(tx, { ...entry, kind: "playbook" })).version, 2);
    assert.equal((await findNewest(tx, "rolled/back"))?.content, "x");
    throw fault;
  });
  await assert.rejects(work, (error) => error === fault);
  assert.equal((await findNewest(database, "rolled/back"))?.version, 1);
  assert.equal((await register("rolled/back")).version, 2);
});

test("an id that is taken is refused, and the path keeps its newest version", async () => {
  const { catalogId } = await register("taken");
  await assert.rejects(register("taken", { catalogId }), { code: "23505" });
  assert.equal((await findNewest(database, "taken"))?.version, 1);
});

test("lists page through the newest version of each path, in the order of bytes", async () => {
  const own = await openServiceDatabase();
  // Byte order: upper case before lower case, whatever the locale says.
  for (const path of ["b", "a/z", "a", "B", "ä", "a/b"]) await register(path, {}, own);
  await register("a", {}, own);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listResources(own, { limit: 2, ...(cursor !== undefined && { cursor }) });
    assert.ok(page.items.length <= 2);
    seen.push(...page.items.map(({ path, version }) => `${path} ${version}`));
    cursor = page.next;
  } while (cursor !== undefined);
  assert.deepEqual(seen, ["B 1", "a 2", "a/b 1", "a/z 1", "b 1", "ä 1"]);
});

test("a page that is full and the last one has no next", async () => {
  const own = await openServiceDatabase();
  for (const path of ["a", "b"]) await register(path, {}, own);
  assert.equal((await listResources(own, { limit: 2 })).next, undefined);
  assert.equal((await listResources(own, { limit: 1 })).next, "a");
  assert.deepEqual(await listResources(own, { limit: 2, cursor: "b" }), { items: [] });
});

test("a prefix is plain text: wildcards in it mean themselves", async () => {
  const own = await openServiceDatabase();
  for (const path of ["team_a/x", "teamXa/x", "team%/x", "team_a", "team_ab/y"]) await register(path, {}, own);
  const paths = async (prefix: string) =>
    (await listResources(own, { limit: 10, prefix })).items.map(({ path }) => path);
  assert.deepEqual(await paths("team_a"), ["team_a", "team_a/x", "team_ab/y"]);
  assert.deepEqual(await paths("team_a/"), ["team_a/x"]);
  assert.deepEqual(await paths("team%"), ["team%/x"]);
  assert.deepEqual(await paths("none"), []);
  assert.equal((await paths("")).length, 5);
});

test("a list of one kind has the paths whose newest version is of that kind", async () => {
  const own = await openServiceDatabase();
  await register("was/agent", { kind: "agent" }, own);
  await register("was/agent", { kind: "playbook" }, own);
  await register("is/agent", { kind: "agent" }, own);
  await register("tools", { kind: "mcp" }, own);
  const paths = async (resourceType: "playbook" | "agent" | "mcp") =>
    (await listResources(own, { limit: 10, resourceType })).items.map(({ path }) => path);
  assert.deepEqual(await paths("agent"), ["is/agent"]);
  assert.deepEqual(await paths("playbook"), ["was/agent"]);
  assert.deepEqual(await paths("mcp"), ["tools"]);
  const agents = await listAgents(own, { limit: 10 });
  assert.deepEqual(
    agents.items.map(({ path, payload }) => [path, payload]),
    [["is/agent", { metadata: { name: "agent", path: "is/agent" } }]],
  );
});

test("versions page from the newest to the oldest", async () => {
  for (let count = 0; count < 5; count += 1) await register("many");
  const first = await listVersions(database, "many", { limit: 2 });
  assert.deepEqual([first.items.map(({ version }) => version), first.next], [[5, 4], 4]);
  const second = await listVersions(database, "many", { limit: 3, cursor: 4 });
  assert.deepEqual([second.items.map(({ version }) => version), second.next], [[3, 2, 1], undefined]);
});
