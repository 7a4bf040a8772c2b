import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { before, test } from "node:test";
import { listen } from "../../../src/roles/http/listen.ts";
import { type Body, openApi } from "../../support/service/api.ts";
import { type Claimed, ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);

before(async () => {
  await work.register("q/one", ONE_STEP);
  await work.register(
    "q/shell",
    `  - step: start
    tool: { kind: shell, command: "true" }
`,
  );
});

const claim = (body: Body) => work.post("/api/commands/claim", { worker: "w", limit: 10, ...body });
const commandsOf = ({ body }: { body: Body }) => body["commands"] as Body[];

/** Leaves no command for the next test. */
async function drain(): Promise<void> {
  while (commandsOf(await claim({ worker: "drain" })).length > 0);
}

test("a claim that does not wait is answered at once, with nothing when there is nothing", async () => {
  await drain();
  const { status, body } = await claim({});
  assert.deepEqual([status, body], [200, { commands: [] }]);
});

test("a claim that waits is woken by the next command", async () => {
  await drain();
  const waiting = claim({ wait_ms: 30_000 });
  const id = await work.execute("q/one");
  const [command] = commandsOf(await waiting);
  assert.equal(command?.["execution_id"], id);
  assert.equal(command?.["attempt"], 1);
});

test("a worker gets what it can run, and never more than it asked for", async () => {
  await drain();
  const shell = await work.execute("q/shell");
  for (let at = 0; at < 3; at += 1) await work.execute("q/one");
  const first = commandsOf(await claim({ kinds: ["noop"], limit: 2 }));
  assert.equal(first.length, 2);
  const second = commandsOf(await claim({ kinds: ["noop", "http"] }));
  assert.equal(second.length, 1);
  const third = commandsOf(await claim({ kinds: ["shell"] }));
  assert.deepEqual(
    third.map(({ execution_id }) => execution_id),
    [shell],
  );
});

test("claims that make no sense are 422", async () => {
  for (const body of [
    { limit: 0 },
    { limit: 1.5 },
    { limit: 1_001 },
    { worker: "" },
    { worker: "a\u0000" },
    { worker: "x".repeat(256) },
    { wait_ms: 30_001 },
    { kinds: "noop" },
    { labels: { a: 1 } },
  ]) {
    const { status, body: answer } = await claim(body);
    assert.deepEqual([status, answer["code"]], [422, "INVALID_INPUT"], JSON.stringify(body));
  }
});

test("one command is claimed by its id; while it is held it is 409 with Retry-After, and so is one that has ended", async () => {
  await drain();
  const id = await work.execute("q/one");
  const [row] = await api.database.sql`select command_id from flow.command where execution_id = ${id}`;
  const path = `/api/commands/${row?.["command_id"]}/claim`;
  const first = await work.post(path, { worker: "a" });
  assert.deepEqual([first.status, first.body["execution_id"], first.body["attempt"]], [200, id, 1]);
  const held = await work.post(path, { worker: "b" });
  assert.deepEqual([held.status, held.body["code"]], [409, "active_claim"]);
  assert.equal((held.body["detail"] as Body)["reason"], "another worker holds it");
  const own = await work.post(path, { worker: "a" });
  assert.deepEqual([own.status, (own.body["detail"] as Body)["reason"]], [409, "this worker holds it already"]);
  const seconds = Number(held.headers.get("retry-after"));
  assert.ok(seconds > 100 && seconds <= 120, `${seconds}`);
  await work.post(`/api/executions/${id}/cancel`);
  const ended = await work.post(path, { worker: "b" });
  assert.deepEqual([ended.status, ended.body["code"]], [409, "already_terminal"]);
  assert.equal(ended.headers.get("retry-after"), null);
  const other = await work.execute("q/one");
  const [command] = commandsOf(await claim({ worker: "ends" }));
  assert.equal(command?.["execution_id"], other);
  await work.finish("ends", command as Claimed);
  const gone = await work.post(`/api/commands/${command?.["command_id"]}/claim`, { worker: "b" });
  assert.deepEqual([gone.status, gone.body["code"]], [409, "already_terminal"]);
  assert.match(String(gone.body["error"]), /it has ended, or never was a command/);
  for (const unknown of ["4711", "9007199254740991", "x", "0"]) {
    assert.equal((await work.post(`/api/commands/${unknown}/claim`, { worker: "b" })).status, 404);
  }
});

test("a command with an ended lease and a dead worker goes to another worker, with a higher attempt", async () => {
  await drain();
  const id = await work.execute("q/one");
  const [command] = commandsOf(await claim({ worker: "gone" }));
  assert.equal(command?.["execution_id"], id);
  await api.database
    .sql`update flow.command set lease_expires_at = now() - interval '1 second' where execution_id = ${id}`;
  const path = `/api/commands/${command?.["command_id"]}/claim`;
  const again = await work.post(path, { worker: "next" });
  assert.deepEqual([again.status, again.body["attempt"]], [200, 2]);
});

test("a client that disconnects while it waits holds nothing: the next command goes to another", async () => {
  await drain();
  const { orchestrator } = api.service;
  const { claim: original } = orchestrator;
  let arrived: (() => void) | undefined;
  const isWaiting = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  let signal: AbortSignal | undefined;
  const server = await listen(
    { fetch: (raw) => api.open.fetch(raw), malformed: () => new Response(null, { status: 400 }) },
    { host: "127.0.0.1", port: 0 },
  );
  // The routes call it on the object, so this is what they call.
  orchestrator.claim = (input, listening) => {
    signal = listening;
    arrived?.();
    return original(input, listening);
  };
  try {
    const client = request(`${server.url}/api/commands/claim`, { method: "POST" });
    client.on("error", () => undefined);
    client.end(JSON.stringify({ worker: "leaves", limit: 1, wait_ms: 30_000 }));
    await isWaiting;
    assert.ok(signal !== undefined);
    client.destroy();
    if (!signal.aborted) await once(signal, "abort");
    const id = await work.execute("q/one");
    orchestrator.claim = original;
    const [command] = commandsOf(await claim({ worker: "stays", wait_ms: 5_000 }));
    assert.equal(command?.["execution_id"], id);
  } finally {
    orchestrator.claim = original;
    await server.close();
  }
});

test("a server that stops answers who waits, with nothing", async () => {
  const stopped = await openApi();
  const waiting = workWith(stopped).post("/api/commands/claim", { worker: "w", limit: 1, wait_ms: 30_000 });
  stopped.stopping.abort();
  assert.deepEqual((await waiting).body, { commands: [] });
});
