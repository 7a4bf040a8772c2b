import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { expiryWords } from "../../../src/cli/secrets/keychain.ts";
import { listen } from "../../../src/roles/http/listen.ts";
import { openApi } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";

const api = await openApi();
const work = workWith(api);
const server = await listen(
  { fetch: (request) => api.open.fetch(request), malformed: () => new Response(null, { status: 400 }) },
  { host: "127.0.0.1", port: 0 },
);
after(() => server.close());

let catalogId: string;
let execution: string;
before(async () => {
  await work.register("etl/load", ONE_STEP);
  catalogId = String((await work.get("/api/catalog/resource/etl/load")).body["catalog_id"]);
  execution = await work.execute("etl/load");
  const past = new Date(Date.now() - 7_500_000).toISOString();
  for (const [name, more] of [
    ["api", { auto_renew: true, ttl_seconds: 7_300 }],
    ["old", { expires_at: past }],
    ["mine", { scope_type: "local", execution_id: execution }],
    ["ours", { scope_type: "shared", execution_id: execution }],
  ] as const) {
    const body = { token_data: { access_token: "c4nary" }, credential_type: "oauth2", ...more };
    const { status } = await work.post(`/api/keychain/${catalogId}/${name}`, body);
    assert.equal(status, 200);
  }
  await work.get(`/api/keychain/${catalogId}/api`);
});

async function setup(t: TestContext) {
  const folder = await folderWith(t, {});
  const environment = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings"), FLOW_SERVER_URL: server.url };
  return (...args: string[]) => runFlow(folder, args, environment);
}

test("keychain list shows each entry, whose it is and when it expires, and never what is in it", async (t) => {
  const run = await setup(t);
  for (const playbook of ["etl/load", catalogId]) {
    const { code, stdout, stderr } = await run("keychain", "list", playbook);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      stdout.split("\n").map((line) => line.split(/ {2,}/)),
      [
        ["NAME", "SCOPE", "EXECUTION", "TYPE", "EXPIRES", "RENEWED", "READ"],
        ["api", "global", "oauth2", "in 2 hours", "yes", "1 time"],
        ["mine", "local", execution, "oauth2", "in 59 minutes", "no", "0 times"],
        ["old", "global", "oauth2", "2 hours ago", "no", "0 times"],
        ["ours", "shared", execution, "oauth2", "in 23 hours", "no", "0 times"],
        [""],
      ],
    );
    assert.match(stderr, /^4 entries of catalog entry \d+ at http/);
    assert.ok(!(stdout + stderr).includes("c4nary"));
  }
  const { stdout } = await run("keychain", "list", "etl/load", "--json");
  const { catalog_id, entries } = JSON.parse(stdout) as { catalog_id: number; entries: Record<string, unknown>[] };
  assert.equal(catalog_id, Number(catalogId));
  assert.deepEqual(
    entries.map(({ keychain_name, access_count }) => [keychain_name, access_count]),
    [
      ["api", 1],
      ["mine", 0],
      ["old", 0],
      ["ours", 0],
    ],
  );
  assert.ok(!stdout.includes("c4nary"));
});

test("keychain delete removes an entry of its scope, and says if it did not exist", async (t) => {
  const run = await setup(t);
  const status = async (query: string) => (await work.get(`/api/keychain/${catalogId}/ours?${query}`)).body["status"];
  const shared = ["--scope", "shared", "--execution", execution];
  const none = await run("keychain", "delete", "etl/load", "ours");
  assert.deepEqual([none.code, none.stdout], [0, "Keychain entry 'ours' was not there\n"]);
  assert.equal(await status(`scope_type=shared&execution_id=${execution}`), "success");
  const gone = await run("keychain", "delete", "etl/load", "ours", ...shared);
  assert.deepEqual([gone.code, gone.stdout], [0, "Keychain entry 'ours' was deleted\n"]);
  assert.equal(await status(`scope_type=shared&execution_id=${execution}`), "not_found");
  const { stdout } = await run("keychain", "delete", catalogId, "ours", ...shared, "--json");
  assert.equal((JSON.parse(stdout) as { status: string }).status, "success");
});

test("wrong words are refused with what is expected, before any call", async (t) => {
  const run = await setup(t);
  for (const [words, message] of [
    [["keychain"], /'flow keychain' needs a command: list, delete/],
    [["keychain", "show", "x"], /list/],
    [["keychain", "list"], /playbook/],
    [["keychain", "list", "x", "y"], /'flow keychain list' does not take 'y'/],
    [["keychain", "delete", "x"], /'flow keychain delete' needs <entry>/],
    [["keychain", "delete", "x", "y", "z"], /z/],
    [["keychain", "delete", "x", "y", "--scope", "local"], /--execution/],
    [["keychain", "delete", "x", "y", "--execution", "5"], /--scope/],
    [["keychain", "delete", "x", "y", "--scope", "catalog"], /global/],
    [["keychain", "delete", "x", "y", "--scope", "local", "--execution", "none"], /none/],
    [["keychain", "list", "7", "--version", "1"], /--version/],
  ] as const) {
    const { code, stderr, stdout } = await run(...words);
    assert.equal(code, 2, `${words.join(" ")}: ${stderr}`);
    assert.match(stderr, message);
    assert.equal(stdout, "");
  }
});

test("an unknown playbook is reported", async (t) => {
  const run = await setup(t);
  for (const playbook of ["no/such", "77"]) {
    const { code, stderr } = await run("keychain", "list", playbook);
    assert.equal(code, 2, stderr);
    assert.match(stderr, new RegExp(playbook));
  }
});

test("times are shown in their largest unit", () => {
  const words = (seconds: number) => expiryWords(1_000_000 + seconds * 1_000, 1_000_000);
  assert.deepEqual([0, 0.9, 1, 59, 60, -60, 3_599, 3_600, 86_399, 86_400, -200_000].map(words), [
    ...["now", "now", "in 1 second", "in 59 seconds", "in 1 minute", "1 minute ago", "in 59 minutes", "in 1 hour"],
    ...["in 23 hours", "in 1 day", "2 days ago"],
  ]);
});
