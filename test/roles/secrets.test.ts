import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import postgres from "postgres";
import { runFlow } from "../cli/in-process.ts";
import { createServedDatabase, createTestDatabase } from "../support/database/postgres.ts";
import { encryptionKeys, ownDatabase } from "../support/engine/key-ring.ts";
import { type CliEnd, flow, folderWith, playbookText } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

/* Credentials and keys with real processes: servers, a worker, the command line. */

const CANARY = "canary-role-5";
const bearer = (token: string) => JSON.stringify({ type: "bearer", data: { token } });

async function dataOf(url: string, name: string): Promise<{ status: number; data: { token?: string } }> {
  const response = await fetch(`${url}/api/credentials/${name}?include_data=true`);
  const { data } = (await response.json()) as { data: { token?: string } };
  return { status: response.status, data };
}

test("a server with a database of its own does not begin without a key, nor with a default one, and says what to set", async (t) => {
  const folder = await folderWith(t, {});
  const FLOW_DATABASE_URL = "postgres://flow:canary@127.0.0.1:1/flow";
  const start = (keys: Record<string, string>) =>
    runFlow(folder, ["serve", "--port", "0"], { FLOW_DATABASE_URL, ...keys });
  const zero = Buffer.alloc(32).toString("base64");
  for (const [keys, message] of [
    [{}, /needs a key.*Set FLOW_ENCRYPTION_KEYS=k1:/],
    [{ FLOW_ENCRYPTION_KEYS: `k1:${zero}` }, /FLOW_ENCRYPTION_KEYS: key 1 \('k1'\) is no random key/],
  ] as const) {
    const { code, stderr } = await start(keys);
    assert.equal(code, 2);
    assert.match(stderr, message);
    assert.ok(!stderr.includes(zero));
  }
});

test("credentials of the settings are registered at the start, used by the worker, and changes of them survive a restart", async (t) => {
  const folder = await folderWith(t, {
    "use.yaml": playbookText(
      "use",
      `  - step: ask
    tool: {kind: http, url: "{{ workload.url }}/api/credentials", auth: "{{ workload.who }}"}
`,
      "workload: {url: '', who: given}\n",
    ),
    "credentials.json": JSON.stringify({ from_file: JSON.parse(bearer("f")) as unknown }),
  });
  const environment = {
    ...ownDatabase((await createServedDatabase()).url),
    FLOW_HTTP_ALLOW_PRIVATE: "all",
    FLOW_SERVER_TOKEN: "operator-token",
    FLOW_WORKER_TOKEN: "worker-token",
    FLOW_CREDENTIAL_GIVEN: bearer("operator-token"),
    FLOW_CREDENTIALS_FILE: join(folder, "credentials.json"),
  };
  const first = await startServe(t, folder, environment, ["--role", "all"]);
  const run = (url: string, ...args: string[]) =>
    runFlow(folder, args, { FLOW_SERVER_URL: url, FLOW_SERVER_TOKEN: "operator-token" });
  const list = await run(first.url, "credentials", "--json");
  const { items } = JSON.parse(list.stdout) as { items: { name: string }[] };
  assert.deepEqual(
    items.map(({ name }) => name),
    ["from_file", "given"],
  );
  // Its owner has not said which playbooks may use it: nothing of it arrives, and the failure says what to do.
  const unsaid = await run(first.url, "run", "use.yaml", "--set", `url=${first.url}`, "--json");
  assert.equal(unsaid.code, 1);
  assert.match(unsaid.stdout, /'given' is for no playbook yet.* flow credentials paths given use/);
  const said = await run(first.url, "credentials", "paths", "given", "use");
  assert.equal(said.stdout, "Playbooks that may use 'given': use\n");
  // It is the credential's token with which the task gets in.
  const done = await run(first.url, "run", "use.yaml", "--set", `url=${first.url}`, "--json");
  assert.equal(done.code, 0, done.stderr);
  const missing = await run(first.url, "run", "use.yaml", "--set", `url=${first.url}`, "--set", "who=nobody", "--json");
  assert.equal(missing.code, 1);
  assert.match(missing.stdout, /There is no credential 'nobody'; register it/);
  await run(first.url, "credentials", "set", "given", "--type", "bearer", "token=changed");
  first.process.kill("SIGTERM");
  const { stderr } = await first.ended;
  assert.ok(!stderr.includes("operator-token") && stderr.includes("those that were absent are registered"));
  assert.match(stderr, /no playbook may use these credentials yet/);
  const second = await startServe(t, folder, environment);
  const shown = await run(second.url, "credentials", "get", "given", "--include-data", "--yes", "--json");
  assert.deepEqual((JSON.parse(shown.stdout) as { data: unknown }).data, { token: "changed" });
});

test("a credential of the settings that cannot be one keeps the server from starting, with every problem and no value", async (t) => {
  const folder = await folderWith(t, {});
  const { url } = await createTestDatabase();
  const { code, stderr } = await flow(folder, ["serve", "--role", "server", "--port", "0"], {
    FLOW_DATABASE_URL: url,
    FLOW_ENCRYPTION_KEYS: encryptionKeys("k1"),
    FLOW_CREDENTIAL_ONE: `{"type": "postgres", "data": {"password": "${CANARY}"}}`,
    FLOW_CREDENTIAL_TWO: `{"type": "basic", "data": {"password": "${CANARY}"}}`,
  });
  assert.equal(code, 2, stderr);
  assert.match(stderr, /FLOW_CREDENTIAL_ONE: type: /);
  assert.match(stderr, /FLOW_CREDENTIAL_TWO: Credential validation failed: Missing required field: username/);
  assert.ok(!stderr.includes(CANARY));
});

test("two callers rotate through two servers while credentials are read: no read fails, and the old key can go", async (t) => {
  const folder = await folderWith(t, {});
  const { url: database } = await createServedDatabase();
  const count = 300;
  const start = (...ids: string[]) =>
    startServe(t, folder, { FLOW_DATABASE_URL: database, FLOW_ENCRYPTION_KEYS: encryptionKeys(...ids) });
  // As it is done: each server gets the new key behind the old one first, then in front of it. One is still at the first step.
  const two = await start("k1", "k2");
  for (let from = 0; from < count; from += 50)
    await Promise.all(Array.from({ length: 50 }, (_, at) => save(two.url, from + at)));
  const one = await start("k2", "k1");
  const rotating = [0, 1].map(() => runFlow(folder, ["secrets", "rotate"], { FLOW_SERVER_URL: one.url }));
  let isOver = false;
  const reads = [one.url, two.url].map(async (url, offset) => {
    let done = 0;
    for (let at = offset; !isOver; at = (at + 7) % count, done += 1) {
      const { status, data } = await dataOf(url, `c${at}`);
      assert.deepEqual([status, data], [200, { token: `t${at}` }]);
    }
    return done;
  });
  const ends: CliEnd[] = await Promise.all(rotating);
  isOver = true;
  for (const done of await Promise.all(reads)) assert.ok(done > 0);
  for (const { code, stderr } of ends) assert.equal(code, 0, stderr);
  assert.ok(ends.some(({ stdout }) => /secrets? re-encrypted|Nothing to do/.test(stdout)));
  const sql = postgres(database, { max: 1, onnotice: () => undefined });
  const [left] = await sql<{ keys: string[] }[]>`
    select array_agg(distinct split_part(data_encrypted, '.', 2)) as keys from flow.credential`;
  await sql.end();
  assert.deepEqual(left?.keys, ["k2"]);
  const without = await start("k2");
  assert.deepEqual((await dataOf(without.url, "c7")).data, { token: "t7" });
  const wrong = await start("k3");
  assert.equal((await dataOf(wrong.url, "c7")).status, 500);
  wrong.process.kill("SIGTERM");
  assert.match(
    (await wrong.ended).stderr,
    /300 secrets in the database are encrypted with the key 'k2', which this server does not have/,
  );
});

async function save(url: string, at: number): Promise<void> {
  const response = await fetch(`${url}/api/credentials`, {
    method: "POST",
    body: JSON.stringify({ name: `c${at}`, type: "bearer", data: { token: `t${at}` } }),
  });
  assert.equal(response.status, 201);
}
