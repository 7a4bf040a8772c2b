import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { DOMAIN, type Person } from "../support/servers/identity-provider.ts";
import { folderWith, playbookText } from "../support/service/cli-process.ts";
import { startLoginService } from "../support/service/login-service.ts";
import { command } from "./in-process.ts";

/* The commands through a real gateway: what the other tests script is as they say. */

const ADA = { sub: "ada", email: "ada@example.com", name: "Ada" };
const BOB = { sub: "bob", email: "bob@example.com", name: "Bob" };
const HELLO = playbookText("hello", '  - step: start\n    tool: {kind: noop, result: {text: "hello"}}\n');

test("people log in, do what their roles allow, gain and lose it with their next command, and log out", async (t) => {
  const service = await startLoginService(t, {
    FLOW_ADMIN_EMAILS: ADA.email,
    // However slow the machine is.
    FLOW_GATEWAY_LOGIN_SECONDS: "50",
  });
  const gateway = service.server.gatewayUrl ?? "";
  const folder = await folderWith(t, { "hello.yaml": HELLO });
  const environment = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings") };
  const run = (...args: string[]) => command(folder, args, environment);
  const ok = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    assert.equal(code, 0, `flow ${args.join(" ")}: ${stderr}`);
    return stdout;
  };
  const logIn = async (context: string, person: Person) => {
    await writeFile(join(folder, "token.txt"), await service.provider.idToken(person));
    const where = ["--gateway", gateway, "--context", context, "--domain", DOMAIN];
    return await ok("login", ...where, "--id-token-file", "token.txt");
  };

  assert.match(await logIn("ada", ADA), /^Logged in at \S+ as Ada <ada@example\.com> \(admin\) until \d{4}-\S+Z$/m);
  assert.match(await logIn("bob", BOB), /Bob <bob@example\.com> \(no role yet: an administrator grants one\)/);
  assert.match(await ok("whoami"), /^Bob <bob@example\.com>, user \d+ at .* \(context 'bob'\)\nroles: +none/m);

  // Without a role, nothing.
  assert.equal((await run("can", "execute", "hello")).code, 1);
  const refused = await run("register", "hello.yaml");
  assert.notEqual(refused.code, 0);
  const users = await run("users", "--context", "bob");
  assert.equal(users.code, 1);
  assert.match(users.stderr, /manage_users/);

  // What an administrator grants counts for the next command.
  await ok("users", "grant", BOB.email, "developer", "--context", "ada");
  assert.equal((await run("can", "execute", "hello")).code, 0);
  const outcome = JSON.parse(await ok("run", "hello.yaml", "--runtime", "server", "--json")) as Record<string, unknown>;
  assert.deepEqual([outcome["status"], outcome["result"]], ["COMPLETED", { text: "hello" }]);
  assert.match(await ok("status", "--last"), /^hello version 1 {2}COMPLETED/);
  assert.match(await ok("events", "--last"), /playbook\.completed/);
  assert.match(await ok("users", "show", BOB.email, "--context", "ada"), /^role: +developer, by ada@example\.com, /m);

  // What is taken away is gone at once: the role, then the session.
  await ok("users", "revoke", BOB.email, "developer", "--context", "ada");
  assert.equal((await run("can", "execute", "hello")).code, 1);
  await ok("users", "deactivate", BOB.email, "--context", "ada");
  const over = await run("whoami");
  assert.equal(over.code, 1);
  assert.match(over.stderr, /'flow login' opens a session/);

  await ok("logout", "--context", "ada");
  assert.match(await ok("context", "list"), /ada +\S+ +\(gateway; not logged in\)/);
  assert.match((await run("whoami", "--context", "ada")).stderr, /'flow login' opens a session/);
});
