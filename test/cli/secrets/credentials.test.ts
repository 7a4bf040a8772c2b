import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { listen } from "../../../src/roles/http/listen.ts";
import { openApi } from "../../support/service/api.ts";
import { folderWith, MAIN } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";

const api = await openApi();
const server = await listen(
  { fetch: (request) => api.open.fetch(request), malformed: () => new Response(null, { status: 400 }) },
  { host: "127.0.0.1", port: 0 },
);
after(() => server.close());

const CANARY = "canary-cli-91";

async function setup(t: TestContext, files: Record<string, string> = {}) {
  const folder = await folderWith(t, files);
  const environment = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings"), FLOW_SERVER_URL: server.url };
  return { folder, environment, run: (...args: string[]) => runFlow(folder, ["credentials", ...args], environment) };
}

/** What the server has, decrypted. */
async function dataOf(name: string): Promise<unknown> {
  const response = await api.open.request(`/api/credentials/${encodeURIComponent(name)}?include_data=true`);
  return ((await response.json()) as { data: unknown }).data;
}

test("set takes fields of the command line as the type wants them, of files as text, and as JSON", async (t) => {
  const { run } = await setup(t, { "password.txt": `${CANARY}\n` });
  const fields = ["host=db", "port=5432", "user=1", "password=@password.txt", "database=d=e", 'options:={"a":[1]}'];
  const { code, stdout, stderr } = await run("set", "pg", "--type", "sqldb", "--tag", "a", "--tag", "b", ...fields);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, `Credential 'pg' (sqldb) is set at ${server.url}\n`);
  assert.deepEqual(await dataOf("pg"), {
    host: "db",
    port: 5432,
    user: "1",
    password: CANARY,
    database: "d=e",
    options: { a: [1] },
  });
  const list = await run("list", "--tag", "a");
  assert.match(list.stdout, /^NAME +TYPE +PLAYBOOKS +TAGS +UPDATED +DESCRIPTION\npg +sqldb +none +a,b +\d{4}-/);
});

test("set takes a file, options and fields win over it; a pipe is a file, too", async (t) => {
  const file = {
    type: "bearer",
    data: { token: "old", extra: 1 },
    description: "from the file",
    schema: { required: ["token"] },
  };
  const { folder, environment, run } = await setup(t, { "c.json": JSON.stringify(file) });
  const { code, stdout } = await run(
    "set",
    "api",
    "--file",
    "c.json",
    "--description",
    "mine",
    `token=${CANARY}`,
    "--json",
  );
  assert.equal(code, 0);
  const { name, description, schema } = JSON.parse(stdout) as Record<string, unknown>;
  assert.deepEqual(
    { name, description, schema },
    { name: "api", description: "mine", schema: { required: ["token"] } },
  );
  assert.ok(!stdout.includes(CANARY));
  assert.deepEqual(await dataOf("api"), { token: CANARY, extra: 1 });
  const { PATH } = process.env;
  const piped = spawn(process.execPath, [MAIN, "credentials", "set", "piped", "--file", "-"], {
    cwd: folder,
    env: { PATH, ...environment },
  });
  piped.stdin.end(JSON.stringify(file));
  const ended = await new Promise((resolve) => piped.on("close", resolve));
  assert.equal(ended, 0);
  assert.deepEqual(await dataOf("piped"), file.data);
});

test("--paths and 'paths' say which playbooks may use a credential; without them, the command says what to do", async (t) => {
  const { run } = await setup(t, {
    "c.json": JSON.stringify({ type: "bearer", data: { token: CANARY }, meta: { owner: "o" } }),
  });
  const unsaid = await run("set", "closed", "--file", "c.json");
  assert.equal(unsaid.code, 0);
  assert.match(
    unsaid.stderr,
    /No playbook may use 'closed' yet\. Allow some: flow credentials paths closed 'PATH\/\*\*' \(or --paths/,
  );
  const said = await run("set", "team", "--file", "c.json", "--paths", "team/**", "--paths", "b");
  assert.match(said.stdout, /Playbooks that may use 'team': team\/\*\*, b\n$/);
  assert.equal((await run("paths", "team", "other/**")).stdout, "Playbooks that may use 'team': other/**\n");
  const { meta, playbooks } = JSON.parse((await run("get", "team", "--json")).stdout) as Record<string, unknown>;
  assert.deepEqual([meta, playbooks], [{ owner: "o", playbooks: ["other/**"] }, ["other/**"]]);
  assert.match((await run("list")).stdout, /^closed +bearer +none /m);
  assert.match((await run("paths", "team", "--none")).stderr, /No playbook may use 'team' yet/);
  for (const [words, message] of [
    [["team"], /Which playbooks may use 'team'\? After the name give paths or patterns/],
    [["team", "a", "--none"], /give paths or patterns .* or --none/],
    [["unknown", "a"], /no credential 'unknown'/],
    [["team", ""], /is empty: is a variable not set/],
  ] as const) {
    const { code, stderr } = await run("paths", ...words);
    assert.equal(code, 2, stderr);
    assert.match(stderr, message);
  }
});

test("data that violate a schema are refused with all problems before any call, with exit code 2 and without values", async (t) => {
  const { run } = await setup(t);
  const schema = '{"fields": ["username", "password"]}';
  const { code, stderr } = await run(
    "set",
    "bad",
    "--type",
    "basic",
    "--schema",
    schema,
    `other=${CANARY}`,
    "--server",
    "http://127.0.0.1:1",
  );
  assert.equal(code, 2);
  for (const message of [
    "Missing required field: username",
    "Missing required field: password",
    "Unexpected fields: other",
  ]) {
    assert.ok(stderr.includes(message), stderr);
  }
  assert.ok(!stderr.includes(CANARY));
});

for (const [what, args, message] of [
  ["no data", ["set", "a", "--type", "custom"], /needs data: KEY=VALUE/],
  ["no type", ["set", "a", "k=v"], /What type is 'a'\? --type is one of sqldb, oauth2/],
  ["an unknown type", ["set", "a", "--type", "postgres", "k=v"], /type must be one of sqldb/],
  ["a field without a key", ["set", "a", "--type", "custom", CANARY], /A field is KEY=VALUE/],
  ["JSON that is none", ["set", "a", "--type", "custom", `k:={${CANARY}`], /k:=… is not JSON/],
  ["a name that is a number", ["set", "12", "--type", "custom", "k=v"], /name: must be no number/],
  ["a file that is not there", ["set", "a", "--file", "no.json"], /Cannot read no\.json/],
  ["a file that is no JSON", ["set", "a", "--file", "no.txt"], /--file no\.txt is not JSON/],
  ["no name", ["get"], /'flow credentials get' needs <name>/],
  ["a name for list", ["list", "x"], /did you mean --search x/],
  ["fields for get", ["get", "a", "b=c"], /does not take 'b=c'/],
] as const) {
  test(`${what}: exit code 2, and no value is repeated`, async (t) => {
    const { run } = await setup(t, { "no.txt": CANARY });
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [2, ""], stderr);
    assert.match(stderr, message);
    assert.ok(!stderr.includes(CANARY), stderr);
  });
}

test("get shows the record; data only when they are asked for, loudly, and confirmed", async (t) => {
  const { run } = await setup(t);
  await run("set", "shown", "--type", "bearer", "--tag", "x", `token=${CANARY}`);
  const plain = await run("get", "shown");
  assert.match(plain.stdout, /^id: +\d+\nname: +shown\ntype: +bearer\n/);
  assert.match(plain.stdout, /^tags: +x$/m);
  const unasked = await run("get", "shown", "--include-data");
  assert.deepEqual([unasked.code, unasked.stdout], [2, ""]);
  assert.match(unasked.stderr, /CLEAR TEXT.*audit log[\s\S]*no terminal here: add --yes/);
  for (const { stdout, stderr } of [plain, unasked, await run("get", "shown", "--json"), await run("list", "--json")]) {
    assert.ok(!`${stdout}${stderr}`.includes(CANARY));
  }
  const yes = await run("get", "shown", "--include-data", "--yes", "--json");
  assert.match(yes.stderr, /CLEAR TEXT/);
  assert.deepEqual((JSON.parse(yes.stdout) as { data: unknown }).data, { token: CANARY });
  assert.match((await run("get", "shown", "--include-data", "--yes")).stdout, new RegExp(`data:\\n\\{\\n.*${CANARY}`));
});

test("list filters, and delete deletes; what is unknown is exit code 2", async (t) => {
  const { run } = await setup(t);
  await run("set", "find-me", "--type", "custom", "--description", "needle here", "a=b");
  const names = async (...args: string[]) => {
    const { stdout } = await run("list", "--json", ...args);
    return (JSON.parse(stdout) as { items: { name: string }[] }).items.map(({ name }) => name);
  };
  assert.deepEqual(await names("--search", "NEEDLE"), ["find-me"]);
  assert.deepEqual(await names("--type", "custom", "--search", "find"), ["find-me"]);
  assert.deepEqual(await names("--type", "broker", "--search", "find"), []);
  const gone = await run("delete", "find-me");
  assert.match(gone.stdout, /^Credential 'find-me' was deleted/);
  const again = await run("delete", "find-me");
  assert.equal(again.code, 2);
  assert.match(again.stderr, /There is no credential 'find-me'/);
});

test("secrets rotate says when nothing is left to do", async (t) => {
  const { folder, environment, run } = await setup(t);
  await run("set", "rotated", "--type", "custom", "a=b");
  const { code, stdout } = await runFlow(folder, ["secrets", "rotate"], environment);
  assert.deepEqual([code, stdout], [0, "Nothing to do: every credential and keychain entry has the key 'k1'\n"]);
  const json = await runFlow(folder, ["secrets", "rotate", "--json"], environment);
  assert.deepEqual(JSON.parse(json.stdout), { key_id: "k1", rotated: 0, left: 0, failed: [] });
});
