import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { planPlaybook } from "../../src/cli/documents/plan.ts";
import { command, workspace } from "../testing/workspace.ts";

const PLAYBOOK = `apiVersion: demo/v2
kind: Playbook
metadata: {name: main}
workload: {host: api.test, key: "{{ env.API_KEY }}", pages: 3}
keychain: [{name: crm, kind: bearer, auth: crm_login}]
workflow:
  - step: fetch
    desc: Reads all users
    loop: {in: "{{ range(pages) }}", iterator: page, spec: {mode: parallel, max_in_flight: 2}}
    tool:
      kind: http
      url: "https://{{ host }}/users?page={{ page }}&key={{ key }}"
      headers: {Authorization: "Bearer {{ keychain.crm.token }}"}
      auth: api_login
      timeout: 10
      spec: {policy: {rules: [{when: "output.error", then: {do: retry, attempts: 5, backoff: exponential, delay: 2}}]}}
    next: {arcs: [{step: failed, when: "event.name == 'step.failed'"}, {step: save}]}
  - step: save
    tool: {kind: python, code: "# a\\nresult = 1\\n", input: {users: "{{ fetch.results }}"}}
  - {step: failed, tool: {kind: noop}}
`;

const CANARY = "canary-4711";

/** Credentials and an allow-listed variable, all with the canary as their value. */
const environment = {
  PATH: process.env["PATH"] ?? "",
  API_KEY: CANARY,
  FLOW_TEMPLATE_ENV: "API_KEY",
  FLOW_CREDENTIAL_CRM_LOGIN: JSON.stringify({ type: "bearer", data: { token: CANARY } }),
  FLOW_CREDENTIAL_API_LOGIN: JSON.stringify({ type: "api_key", data: { key: CANARY } }),
};

test("a plan shows every step with what is known, in an order in which they can run", async (t) => {
  const folder = workspace(t, { "main.yaml": PLAYBOOK });
  const run = await command(planPlaybook, folder, ["main.yaml"], { set: ["pages=4"] }, environment);
  assert.equal(run.code, 0);
  for (const line of [
    /^ {3}pages +4$/m,
    /^ {3}key +\[secret\]$/m,
    /^1\. fetch {2}http {2}entry$/m,
    /^ {3}loop {2}4 times, as page, parallel, at most 2 at a time$/m,
    /^ {3}url +https:\/\/api\.test\/users\?page=\{\{ page \}\}&key=\[secret\] {2}‹needs page›$/m,
    /^ {3}headers\.Authorization +Bearer \[secret\]$/m,
    /^ {3}auth {2}api_login$/m,
    /^ {3}time-out {2}10\.0s$/m,
    /^ {3}policy {2}when output\.error: retry, at most 5 runs, exponential delay 2 s$/m,
    /^ {3}→ failed {2}when event\.name == 'step\.failed' {2}‹needs event›$/m,
    /^ {3}code +# a … \(1 more line\)$/m,
    /^ {3}✓ crm_login {2}bearer {2}for fetch$/m,
  ]) {
    assert.match(run.stdout, line);
  }
});

test("no secret is ever printed, as text or as JSON", async (t) => {
  const folder = workspace(t, { "main.yaml": PLAYBOOK });
  for (const json of [true, false]) {
    const run = await command(planPlaybook, folder, ["main.yaml"], { json }, environment);
    assert.equal(run.code, 0);
    assert.doesNotMatch(run.stdout + run.stderr, new RegExp(CANARY));
  }
});

test("an unreadable credential is reported without its text", async (t) => {
  const folder = workspace(t, { "main.yaml": PLAYBOOK, "creds.json": `{"crm_login": "${CANARY}` });
  const broken = { PATH: environment.PATH, FLOW_CREDENTIALS_FILE: join(folder, "creds.json") };
  const run = await command(planPlaybook, folder, ["main.yaml"], {}, broken);
  assert.match(run.stdout, /✗ crm_login .*is not JSON/);
  assert.doesNotMatch(run.stdout + run.stderr, new RegExp(CANARY));
});

test("--json is one object with every step, task and need", async (t) => {
  const folder = workspace(t, { "main.yaml": PLAYBOOK });
  const run = await command(planPlaybook, folder, ["main.yaml"], { json: true, workload: '{"pages": 1}' });
  const plan = JSON.parse(run.stdout);
  assert.deepEqual(
    plan.steps.map(({ name }: { name: string }) => name),
    ["fetch", "save", "failed"],
  );
  assert.equal(plan.steps[0].loop.count, 1);
  assert.deepEqual(plan.steps[0].tasks[0].auth, ["api_login"]);
  assert.deepEqual(
    plan.credentials.map(({ found }: { found: boolean }) => found),
    [false, false],
  );
  assert.deepEqual(Object.keys(plan).sort(), [
    ...["credentials", "entry_step", "file", "keychain", "kinds", "name", "path", "playbooks", "steps"],
    ...["warnings", "workload"],
  ]);
});

test("an invalid playbook, a missing one and a wrong input are refused", async (t) => {
  const folder = workspace(t, { "main.yaml": PLAYBOOK, "bad.yaml": "kind: Playbook\n" });
  const refused = (args: string[], options: Record<string, string[]>, code: string) =>
    assert.rejects(command(planPlaybook, folder, args, options), { name: "FlowError", code });
  await refused(["bad.yaml"], {}, "INVALID_PLAYBOOK");
  await refused(["none.yaml"], {}, "NOT_FOUND");
  await refused(["main.yaml"], { set: ["novalue"] }, "USAGE");
  await refused([], {}, "USAGE");
});

test("kinds that this machine cannot run are listed with the reason", async (t) => {
  const text = PLAYBOOK.replace(
    "{step: failed, tool: {kind: noop}}",
    "{step: failed, tool: {kind: container, image: x}}",
  );
  const folder = workspace(t, { "main.yaml": text });
  const limited = { PATH: "/nowhere", FLOW_WORKER_TOOLS: "python" };
  const run = await command(planPlaybook, folder, ["main.yaml"], {}, limited);
  assert.match(run.stdout, /✗ http .*FLOW_WORKER_TOOLS/);
  assert.match(run.stdout, /✗ python .*no program python3/);
  assert.match(run.stdout, /✗ container .*nothing here carries it out/);
});

test("needs of many steps are listed with the first of them", async (t) => {
  const steps = Array.from(
    { length: 12 },
    (_, index) => `  - {step: s${index}, next: s${index + 1}, tool: {kind: noop}}\n`,
  );
  const folder = workspace(t, {
    "main.yaml": `apiVersion: demo/v2\nkind: Playbook\nmetadata: {name: main}\nworkflow:\n${steps.join("")}  - {step: s12, tool: {kind: noop}}\n`,
  });
  const { stdout } = await command(planPlaybook, folder, ["main.yaml"], {}, environment);
  assert.match(stdout, /^ {3}✓ noop {2}for s0, s1, s2, s3, s4, s5, s6, s7 and 5 more$/m);
});

test("a plan finds the credentials of the file that --credentials names", async (t) => {
  const folder = workspace(t, {
    "main.yaml": PLAYBOOK,
    "creds.json": JSON.stringify({ api_login: { type: "api_key", data: { key: CANARY } } }),
  });
  const { PATH } = environment;
  const run = await command(planPlaybook, folder, ["main.yaml"], { credentials: "creds.json" }, { PATH });
  assert.match(run.stdout, /^ {3}✓ api_login {2}api_key {2}for fetch$/m);
  assert.match(run.stdout, /^ {3}✗ crm_login .*missing: --credentials FILE/m);
  assert.equal(run.stdout.includes(CANARY), false);
});
