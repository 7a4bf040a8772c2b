import assert from "node:assert/strict";
import { chmod, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { folderWith } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";

async function setup(t: TestContext) {
  const folder = await folderWith(t, { "token.txt": "canary-token\n", "spaces.txt": "canary token\n" });
  const environment = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings") };
  const file = join(folder, "settings", "flow", "contexts.json");
  return { file, run: (...args: string[]) => runFlow(folder, ["context", ...args], environment) };
}

test("the first context is in use at once, another when it is chosen, and none after it is removed", async (t) => {
  const { run } = await setup(t);
  assert.match((await run("add", "local", "--server", "http://127.0.0.1:9/")).stderr, /commands call it now/);
  assert.match((await run("add", "prod", "--server", "https://flow.example.com")).stderr, /flow context use prod/);
  const listed = async () => {
    const { stdout } = await run("list", "--json");
    return (JSON.parse(stdout) as { contexts: Record<string, unknown>[] }).contexts;
  };
  assert.deepEqual(await listed(), [
    { name: "local", server: "http://127.0.0.1:9", token: false, current: true },
    { name: "prod", server: "https://flow.example.com", token: false, current: false },
  ]);
  assert.equal((await run("use", "prod")).code, 0);
  assert.match((await run("list")).stdout, /^\* prod {3}https:\/\/flow\.example\.com$/m);
  assert.equal((await run("remove", "prod")).code, 0);
  assert.deepEqual(
    (await listed()).map(({ name, current }) => [name, current]),
    [["local", false]],
  );
});

test("the file with the tokens is readable by its owner alone, and no command prints one", async (t) => {
  const { file, run } = await setup(t);
  const added = await run("add", "prod", "--server", "https://flow.example.com", "--token-file", "token.txt");
  assert.equal(added.code, 0, added.stderr);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.match(await readFile(file, "utf8"), /"token": "canary-token"/);
  const listed = await run("list");
  assert.match(listed.stdout, /\(with a token\)/);
  const json = await run("list", "--json");
  for (const { stdout, stderr } of [added, listed, json]) assert.doesNotMatch(stdout + stderr, /canary/);
});

test("a file that others can read is refused", async (t) => {
  const { file, run } = await setup(t);
  await run("add", "prod", "--server", "https://flow.example.com");
  await chmod(file, 0o644);
  const { code, stderr } = await run("list");
  assert.equal(code, 2);
  assert.match(stderr, /can be read by others and may hold tokens: chmod 600/);
});

test("a file of another format is reported without its content", async (t) => {
  const { file, run } = await setup(t);
  await run("add", "prod", "--server", "https://flow.example.com");
  for (const text of ["canary", '{"contexts": {"a": "canary"}}']) {
    await writeFile(file, text);
    const { code, stderr } = await run("list");
    assert.equal(code, 2);
    assert.match(stderr, /is not a file of contexts\. Repair it, or delete it/);
    assert.doesNotMatch(stderr, /canary/);
  }
});

for (const [what, args, said] of [
  ["a name that is none", ["add", "a b", "--server", "http://h"], /name consists of letters, digits/],
  ["the name __proto__", ["add", "__proto__", "--server", "http://h"], /name consists of letters, digits/],
  ["an address with a password", ["add", "a", "--server", "http://u:canary@h"], /without user, password/],
  ["an address that is none", ["add", "a", "--server", "h"], /--server must be an http or https address/],
  [
    "a token file that is missing",
    ["add", "a", "--server", "http://h", "--token-file", "none"],
    /Cannot read --token-file none/,
  ],
  [
    "a token with spaces",
    ["add", "a", "--server", "http://h", "--token-file", "spaces.txt"],
    /must hold the token alone/,
  ],
  ["a missing context nearly spelt", ["use", "prdo"], /There is no context 'prdo'\. Did you mean 'prod'\?/],
  ["the name constructor", ["use", "constructor"], /There is no context 'constructor'/],
] as const) {
  test(`${what} is refused, and nothing is changed`, async (t) => {
    const { file, run } = await setup(t);
    await run("add", "prod", "--server", "http://h");
    const before = await readFile(file, "utf8");
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, said);
    assert.doesNotMatch(stderr, /canary/);
    assert.equal(await readFile(file, "utf8"), before);
  });
}
