import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { isAlive } from "../../src/platform/system/process.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";

const ALL = ["--role", "all"];

/** Calls the server. */
async function call<T>({ url }: Serving, method: "GET" | "POST", path: string, body?: unknown): Promise<T> {
  const init =
    body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`${url}${path}`, { method, ...init });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

/** Registers a playbook of these steps and starts it. */
async function start(server: Serving, name: string, workflow: string): Promise<string> {
  const content = `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}, path: ${name}}\nworkflow:\n${workflow}`;
  await call(server, "POST", "/api/catalog/register", { content });
  return (await call<{ execution_id: string }>(server, "POST", "/api/execute", { path: name })).execution_id;
}

interface Ended {
  status: string;
  result: unknown;
  error: { message: string } | null;
}

function end(server: Serving, id: string): Promise<Ended> {
  return call(server, "GET", `/api/executions/${id}/result?wait_ms=30000`);
}

interface Pool {
  items: { name: string; status: string; running: number; runtime: { pid: number } }[];
}

async function workerPid(server: Serving): Promise<number> {
  const { items } = await call<Pool>(server, "GET", "/api/worker/pools");
  return items.find(({ status }) => status === "ready")?.runtime.pid ?? 0;
}

/** Resolves when the process has ended: its channel to us is its file in /proc, so it is looked at again and again. */
async function ended(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** In which order the tasks of a loop's iterations ended. */
async function iterationOrder(server: Serving, id: string): Promise<unknown[]> {
  const path = `/api/executions/${id}/events?event_type=task.done&step=fan&limit=100`;
  const { events } = await call<{ events: { iteration: number }[] }>(server, "GET", path);
  return events.map(({ iteration }) => iteration);
}

const closers: (() => unknown)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});
const closing = { after: (close: () => unknown) => void closers.push(close) };
const firstFolder = await folderWith(closing, {});
/** A first start with nothing set up, until the test that ends it. */
const first = await startServe(closing, firstFolder, {}, ALL);

test("with nothing set up: serve has a worker that runs playbooks, python, shell and sub-playbooks among them", async () => {
  await start(first, "double", '- step: only\n  tool: {kind: noop, result: {twice: "{{ workload.n * 2 }}"}}\n');
  const id = await start(
    first,
    "parent",
    `- step: shell
  tool: {kind: shell, command: "echo 4"}
  next: {arcs: [{step: call}]}
- step: call
  tool: {kind: playbook, path: double, args: {n: 21}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: python, args: {n: "{{ call.twice }}"}, code: "result = {'answer': n}"}
`,
  );
  const { status, result, error } = await end(first, id);
  assert.deepEqual([status, result, error], ["COMPLETED", { answer: 42 }, null]);
});

test("a worker begins the iterations of a loop in their order, also right after an ordinary step", async () => {
  const steps = `- {step: start, tool: {kind: noop}, next: fan}
- {step: fan, loop: {in: 6, spec: {mode: parallel}}, tool: {kind: noop}}
`;
  await end(first, await start(first, "fan", steps));
  const orders: unknown[][] = [];
  for (let run = 0; run < 20; run += 1) {
    const { execution_id: id } = await call<{ execution_id: string }>(first, "POST", "/api/execute", { path: "fan" });
    assert.equal((await end(first, id)).status, "COMPLETED");
    orders.push(await iterationOrder(first, id));
  }
  assert.deepEqual(
    orders,
    orders.map(() => [0, 1, 2, 3, 4, 5]),
  );
});

test("its keys are for its owner alone; told to stop it ends with its worker, and no line of all that is one of trouble or about logins", async () => {
  assert.equal((await stat(join(firstFolder, ".flow/encryption-keys"))).mode & 0o777, 0o600);
  const pid = await workerPid(first);
  first.process.kill("SIGTERM");
  const { code, stderr } = await first.ended;
  assert.equal(code, 0, stderr);
  assert.equal(isAlive(pid), false);
  const lines = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { role: string; level: string; msg: string });
  assert.deepEqual(new Set(lines.map(({ role }) => role)), new Set(["server", "worker"]));
  assert.deepEqual(
    lines.filter(({ level, msg }) => !["debug", "info"].includes(level) || /log in|logins|pg_auth/.test(msg)),
    [],
  );
  const data = /Making a PostgreSQL data folder in ([^"]+)/.exec(stderr)?.[1] ?? "";
  assert.doesNotMatch(await readFile(join(data, "server.log"), "utf8"), /ERROR|FATAL/);
});

test("a worker that is killed is started again and its command is run by the next one; a server that is killed takes it along", async (t) => {
  const { url: databaseUrl } = await createServedDatabase();
  const folder = await folderWith(t, {});
  const environment = {
    ...ownDatabase(databaseUrl),
    FLOW_WORKER_TOOLS: "all",
    FLOW_TASK_FOLDER: folder,
    FLOW_COMMAND_CLAIM_LEASE_SECONDS: "0.5",
    FLOW_COMMAND_REAPER_WORKER_STALE_SECONDS: "0.5",
    FLOW_COMMAND_REAPER_INTERVAL_SECONDS: "0.2",
    FLOW_WORKER_HEARTBEAT_SECONDS: "0.1",
  };
  const server = await startServe(t, folder, environment, ALL);
  const script = "if [ -e began ]; then echo second; else touch began; sleep 60; fi";
  const id = await start(server, "slow", `- step: only\n  tool: {kind: shell, command: "${script}"}\n`);
  await file(join(folder, "began"));
  const first = await workerPid(server);
  process.kill(first, "SIGKILL");
  const { status } = await end(server, id);
  assert.equal(status, "COMPLETED");
  const second = await workerPid(server);
  assert.notEqual(second, first);
  server.process.kill("SIGKILL");
  await ended(second);
});

/** Resolves when the file is there. */
async function file(path: string): Promise<void> {
  while ((await readFile(path).catch(() => undefined)) === undefined)
    await new Promise((resolve) => setTimeout(resolve, 20));
}

test("kill -9 of all of it, with a database of its own: the next start has what was running at once, and runs it", async (t) => {
  // That of the tests above, which has been stopped: to make a database takes longer than the test.
  const folder = firstFolder;
  const server = await startServe(t, folder, {}, ALL);
  const script = "echo began >> began; while [ ! -e go ]; do sleep 0.02; done; echo done";
  const id = await start(server, "slow", `- step: only\n  tool: {kind: shell, command: "${script}"}\n`);
  await file(join(folder, "began"));
  const { items } = await call<Pool>(server, "GET", "/api/worker/pools");
  server.process.kill("SIGKILL");
  await server.ended;
  const again = await startServe(t, folder, {}, ALL);
  const began = performance.now();
  while ((await readFile(join(folder, "began"), "utf8")) !== "began\nbegan\n") {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const seconds = (performance.now() - began) / 1_000;
  t.diagnostic(`it runs again ${seconds.toFixed(1)} s after the start`);
  await writeFile(join(folder, "go"), "");
  assert.equal((await end(again, id)).status, "COMPLETED");
  const after = (await call<Pool>(again, "GET", "/api/worker/pools")).items;
  assert.deepEqual(
    after.map(({ name }) => name),
    items.map(({ name }) => name),
  );
  // By the lease of what it held, and the silence of its worker, it would be minutes.
  assert.ok(seconds < 15, `${seconds} s`);
});
