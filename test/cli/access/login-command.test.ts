import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import { command } from "../in-process.ts";
import { SESSION, startPlayingGateway } from "../playing-gateway.ts";

/** An ID token as far as the command line looks at one. */
function idToken(issuer: string, signature = "c4nary"): string {
  const payload = Buffer.from(JSON.stringify({ iss: issuer })).toString("base64url");
  return `e30.${payload}.${signature}`;
}

async function setup(t: TestContext) {
  const gateway = await startPlayingGateway(t);
  const folder = await folderWith(t, { "token.txt": `${idToken("https://idp.example")}\n`, "none.txt": "c4nary.x" });
  const environment = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings") };
  const file = join(folder, "settings", "flow", "contexts.json");
  const run = (args: readonly string[], more: NodeJS.ProcessEnv = {}, stdin = "") =>
    command(folder, args, { ...environment, ...more }, stdin);
  const contexts = async () => (JSON.parse(await readFile(file, "utf8")) as { contexts: object }).contexts;
  const logIn = () => run(["login", "--gateway", gateway.origin, "--id-token-file", "token.txt"]);
  return { gateway, file, run, logIn, contexts };
}

test("a login keeps the session for its owner alone, prints it nowhere, and later commands call the gateway with it", async (t) => {
  const { gateway, file, run, logIn } = await setup(t);
  const { code, stdout, stderr } = await logIn();
  assert.equal(code, 0, stderr);
  const until = "2999-01-31T12:00:00.000Z";
  const as = "Ada <ada@example.com> (analyst, viewer)";
  assert.equal(stdout, `Logged in at ${gateway.origin} as ${as} until ${until}\n`);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.ok((await readFile(file, "utf8")).includes(SESSION));
  assert.ok(!(await readFile(file, "utf8")).includes(idToken("https://idp.example")), "the ID token is used once");

  gateway.answers.set("GET /flow/catalog?limit=500", { resources: [], next_cursor: null });
  // An operator's token in the environment is of a server, and never sent to a gateway.
  const listed = await run(["catalog"], { FLOW_SERVER_TOKEN: "operator" });
  assert.equal(listed.code, 0, listed.stderr);
  assert.equal(listed.stderr, `0 paths at ${gateway.origin}\n`);
  assert.equal(gateway.requests.at(-1)?.headers.authorization, `Bearer ${SESSION}`);

  const shown = await run(["context", "list"]);
  assert.equal(shown.stdout, `* 127.0.0.1  ${gateway.origin}  (gateway; ada@example.com until ${until})\n`);
  const json = await run(["context", "list", "--json"]);
  for (const said of [stdout, stderr, listed.stderr, shown.stdout, json.stdout]) assert.doesNotMatch(said, /c4nary/);
});

test("with --json one object names the user, and the token may come through a pipe", async (t) => {
  const { gateway, run } = await setup(t);
  const args = ["login", "--gateway", gateway.origin, "--context", "team", "--id-token-file", "-", "--json"];
  const { code, stdout, stderr } = await run(args, {}, `${idToken("https://idp.example/")}\n`);
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), {
    gateway: gateway.origin,
    context: "team",
    user: { user_id: 7, email: "ada@example.com", display_name: "Ada", roles: ["analyst", "viewer"] },
    expires_at: "2999-01-31T12:00:00.000Z",
  });
  const sent = JSON.parse(gateway.requests.at(-1)?.body ?? "{}") as Record<string, string>;
  assert.deepEqual(sent, { idp_token: idToken("https://idp.example/"), idp_domain: "idp.example" });
});

test("a second login takes the context in use, and its gateway", async (t) => {
  const { gateway, run, logIn } = await setup(t);
  await logIn();
  const { code, stderr } = await run(["login", "--id-token", idToken("https://idp.example")]);
  assert.equal(code, 0, stderr);
  assert.equal(gateway.requests.filter(({ url }) => url === "/api/auth/login").length, 2);
});

test("a login warns that FLOW_SERVER_URL overrides its context", async (t) => {
  const { gateway, run } = await setup(t);
  const args = ["login", "--gateway", gateway.origin, "--id-token-file", "token.txt"];
  const { code, stderr } = await run(args, { FLOW_SERVER_URL: "http://127.0.0.1:9" });
  assert.equal(code, 0);
  assert.match(stderr, /^warning: FLOW_SERVER_URL is set and wins over the context in use/);
});

test("an expired session is reported with what to do; a missing permission with the gateway's message", async (t) => {
  const { gateway, run, logIn } = await setup(t);
  await logIn();
  gateway.answers.set("GET /flow/catalog?limit=500", new FlowError("FORBIDDEN", "Role viewer may not see it"));
  const forbidden = await run(["catalog"]);
  assert.deepEqual([forbidden.code, forbidden.stderr], [1, "flow: Role viewer may not see it\n"]);
  gateway.sessions.clear();
  const over = await run(["catalog"]);
  assert.equal(over.code, 1);
  assert.match(over.stderr, /refused the call: The session is over, or there is none\. 'flow login' opens a session$/m);
});

test("a logout ends the session at the gateway and forgets it here; once more is no error", async (t) => {
  const { gateway, run, logIn, contexts } = await setup(t);
  await logIn();
  const { code, stderr } = await run(["logout"]);
  assert.deepEqual([code, stderr], [0, `ada@example.com is logged out of ${gateway.origin}.\n`]);
  assert.equal(gateway.sessions.size, 0);
  assert.deepEqual(await contexts(), { "127.0.0.1": { gateway: gateway.origin, domain: "idp.example" } });
  const again = await run(["logout"]);
  assert.deepEqual([again.code, again.stderr], [0, `There is no session at ${gateway.origin}.\n`]);
  assert.match((await run(["context", "list"])).stdout, /\(gateway; not logged in\)$/m);
});

test("a logout of a session that is over already succeeds", async (t) => {
  const { gateway, run, logIn } = await setup(t);
  await logIn();
  gateway.sessions.clear();
  assert.equal((await run(["logout"])).code, 0);
});

test("where the gateway is away a logout keeps the session to end it later; --local forgets it all the same", async (t) => {
  const { gateway, run, logIn, contexts } = await setup(t);
  await logIn();
  gateway.away = true;
  const kept = await run(["logout"]);
  assert.equal(kept.code, 1);
  assert.match(kept.stderr, /could not be ended and is kept: Cannot reach the gateway at .*flow logout --local$/m);
  assert.ok(JSON.stringify(await contexts()).includes(SESSION));
  const { code, stderr } = await run(["logout", "--local"]);
  assert.equal(code, 0);
  assert.match(stderr, /; the session itself lasts until 2999-/);
  assert.ok(!JSON.stringify(await contexts()).includes(SESSION));
});

test("another gateway under the same host's name is not taken for the first one", async (t) => {
  const { run, logIn } = await setup(t);
  await logIn();
  const other = ["login", "--gateway", "http://127.0.0.1:9", "--id-token-file", "token.txt"];
  const { code, stderr } = await run(other);
  assert.equal(code, 2);
  assert.match(
    stderr,
    /A context '127\.0\.0\.1' already exists for another address: name this one with --context NAME/,
  );
});

for (const [what, args, code, said] of [
  ["no gateway", ["--id-token-file", "token.txt"], 2, /No gateway is selected: there is no context in use\. Name one/],
  ["a context that is missing", ["--context", "prod"], 2, /There is no context 'prod'/],
  ["no token", ["--gateway", "URL"], 2, /'flow login' needs an ID token.*--id-token-file FILE.*FLOW_IDP_CLIENT_ID/s],
  ["two tokens", ["--gateway", "URL", "--id-token", "a", "--id-token-file", "b"], 2, /were both given/],
  ["a file that is missing", ["--gateway", "URL", "--id-token-file", "x"], 2, /Cannot read x for --id-token-file/],
  ["what is no ID token", ["--gateway", "URL", "--id-token-file", "none.txt"], 2, /holds no ID token/],
  ["a gateway that is no address", ["--gateway", "here", "--id-token", "a"], 2, /--gateway must be an http/],
  ["a refused token", ["--gateway", "URL", "--id-token", "BAD"], 1, /^flow: The ID token was rejected$/m],
  ["another provider", ["--gateway", "URL", "--id-token", "OTHER"], 1, /Logins here do not accept 'other\.example'/],
] as const) {
  test(`a login with ${what} is refused, and no context is made`, async (t) => {
    const { gateway, file, run } = await setup(t);
    const words: Record<string, string> = {
      URL: gateway.origin,
      BAD: idToken("https://idp.example", "bad"),
      OTHER: idToken("https://other.example"),
    };
    const end = await run(["login", ...args.map((word) => words[word] ?? word)]);
    assert.deepEqual([end.code, end.stdout], [code, ""]);
    assert.match(end.stderr, said);
    assert.doesNotMatch(end.stderr, /c4nary/);
    await assert.rejects(stat(file));
  });
}

test("an answer that is not a session is not kept and not printed", async (t) => {
  const { gateway, file, logIn } = await setup(t);
  for (const odd of [
    { session_token: "c4nary\nx: y" },
    { expires_at: "soon" },
    { status: "refused" },
    { user: null },
  ]) {
    gateway.odd = odd;
    const { code, stdout, stderr } = await logIn();
    assert.deepEqual([code, stdout], [1, ""], JSON.stringify(odd));
    assert.match(stderr, /Is (it|http\S+ \(--gateway\)) a flow gateway of this version\?$/m);
    assert.doesNotMatch(stderr, /c4nary/);
  }
  await assert.rejects(stat(file));
});

test("a token in the file that cannot be sent is refused without being printed", async (t) => {
  const { file, run, logIn } = await setup(t);
  await logIn();
  await writeFile(file, (await readFile(file, "utf8")).replace(SESSION, "c4nary\\nx"));
  const { code, stderr } = await run(["catalog"]);
  assert.equal(code, 2);
  assert.match(stderr, /is not a file of contexts/);
  assert.doesNotMatch(stderr, /c4nary/);
});

test("a login needs a gateway, and says so where the context in use is a server", async (t) => {
  const { run } = await setup(t);
  await run(["context", "add", "prod", "--server", "http://127.0.0.1:9"]);
  const { code, stderr } = await run(["login", "--id-token-file", "token.txt"]);
  assert.equal(code, 2);
  assert.match(stderr, /context 'prod' is a server, which knows no users/);
});

test("a context is a server or a gateway, and a gateway takes no token of an operator", async (t) => {
  const { run } = await setup(t);
  const both = await run(["context", "add", "a", "--server", "http://h", "--gateway", "http://h"]);
  assert.match(both.stderr, /a context is one of them/);
  const token = await run(["context", "add", "a", "--gateway", "http://h", "--token-file", "token.txt"]);
  assert.match(token.stderr, /'flow login' opens a session/);
  assert.deepEqual([both.code, token.code], [2, 2]);
  const added = await run(["context", "add", "a", "--gateway", "http://h"]);
  const said = "Context 'a' is http://h; commands call it now; 'flow login --context a' opens a session.\n";
  assert.deepEqual([added.code, added.stderr], [0, said]);
});
