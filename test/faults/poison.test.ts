import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { endOf } from "../support/service/api-work.ts";
import { startManualWorker } from "./support/manual-worker.ts";
import { peakMb } from "./support/memory.ts";
import { PAIR_DONE, WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand, ownedByFile } from "./support/stand.ts";

/* Input that is meant to break something (the fault matrix in the design): a clear refusal, and everyone else goes on. */

const stand = await openStand(ownedByFile(), LONG);
const server = await stand.server();
const client = await stand.client(server);

test("malformed events, or events of an unknown command: 4xx that names them, and nothing is written", async () => {
  const worker = await startManualWorker(client, "manual");
  const [id = ""] = await stand.start(client, "pair", 1);
  const command = await worker.claim(id);
  const [done] = endOf(command, { step: command.step });
  const logged = async () => (await client.call("GET", `/api/executions/${id}/events`)).body.events.length;
  const before = await logged();
  let deep: unknown = 0;
  for (let depth = 0; depth < 1_000; depth += 1) deep = [deep];
  const poison: [events: unknown, status: number][] = [
    [[], 422],
    ["none", 422],
    [[null], 422],
    [[{ ...done, event_type: "playbook.completed" }], 422],
    [[{ ...done, command_id: -1 }], 422],
    [[{ ...done, attempt: "1" }], 422],
    [[{ ...done, result: { status: "ok", value: "not in an envelope" } }], 422],
    [[{ ...done, result: { status: "ok", context: { value: deep } } }], 422],
    [[{ ...done, command_id: "1" }], 409],
    [[{ ...done, execution_id: "1" }], 409],
    [[done, { ...done, command_id: "9007199254740991" }], 409],
    [Array.from({ length: 257 }, () => done), 413],
  ];
  for (const [events, expected] of poison) {
    const { status, body } = await client.report("manual", events as object[]);
    assert.equal(status, expected, `${JSON.stringify(events).slice(0, 200)}: ${JSON.stringify(body)}`);
    assert.equal(typeof body.code, "string");
  }
  assert.equal(await logged(), before);
  await worker.end(command);
  await worker.end(await worker.claim(id));
  await stand.finish(client, [id], { ...PAIR_DONE, once: true });
});

test("templates that throw or do not end: their executions fail with a code, other executions continue", async (t) => {
  await stand.during(t).worker(server, "one");
  const endless = "{% for a in range(10000) %}{% for b in range(10000) %}{{ a * b }}{% endfor %}{% endfor %}";
  const poison = [
    ["throws", "{{ [] | sum + {} }}", "TEMPLATE_ERROR", "TEMPLATE_ERROR"],
    ["endless", endless, "TEMPLATE_BUDGET", "DECISION_BUDGET"],
    ["huge", "{{ 'x' * 100000000 }}", "TEMPLATE_BUDGET", "TEMPLATE_BUDGET"],
  ] as const;
  const sound = await stand.start(client, "work", 3);
  for (const [name, template, code, arcCode] of poison) {
    await client.register(
      document(name, `- step: start\n    tool: {kind: noop, result: {it: ${JSON.stringify(template)}}}`),
    );
    // In an arc it is the server that evaluates it, with less to spend.
    const arc = `- step: start\n    tool: {kind: noop}\n    next: {arcs: [{step: end, args: {it: ${JSON.stringify(template)}}}]}\n  - step: end\n    tool: {kind: noop}`;
    await client.register(document(`${name}_arc`, arc));
    await stand.finish(client, await stand.start(client, name, 1), { status: "FAILED", code });
    await stand.finish(client, await stand.start(client, `${name}_arc`, 1), { status: "FAILED", code: arcCode });
  }
  await stand.finish(client, sound, { ...WORK_DONE, once: true });
});

test("documents with alias bombs, deep nesting or excessive size are refused in bounded time and memory", async () => {
  const levels = Array.from(
    { length: 30 },
    (_, level) => `  l${level + 1}: &l${level + 1} [${Array(10).fill(`*l${level}`)}]`,
  );
  const aliases = `${document("bomb", "- step: start\n    tool: {kind: noop}")}\nworkload:\n  l0: &l0 [x]\n${levels.join("\n")}\n`;
  const deep = document(
    "deep",
    `- step: start\n    tool: {kind: noop, result: ${"[".repeat(20_000)}${"]".repeat(20_000)}}`,
  );
  for (const content of [aliases, deep, "\u0000", "[", `a: ${"x".repeat(1_100_000)}`]) {
    const began = performance.now();
    const { status, body } = await client.call("POST", "/api/catalog/register", { content });
    assert.deepEqual([status, body.code], [422, "INVALID_PLAYBOOK"], content.slice(0, 40));
    assert.ok(performance.now() - began < 20_000);
  }
  assert.ok(peakMb(server.pid) < 500, `The server used ${peakMb(server.pid)} MB`);
});

test("bodies without an end: 413 as soon as the limit is exceeded; the server's memory is bounded", async (t) => {
  const before = peakMb(server.pid);
  for (const path of ["/api/events/batch", "/api/execute", "/api/catalog/register", "/api/commands/claim"]) {
    assert.match(await pour(server.port, path, "announced"), /^HTTP\/1\.1 413 /, path);
    assert.match(await pour(server.port, path, "streamed"), /^HTTP\/1\.1 413 /, path);
  }
  const grown = peakMb(server.pid) - before;
  assert.ok(grown < 150, `The server grew by ${grown} MB`);
  await stand.during(t).worker(server, "one");
  await stand.finish(client, await stand.start(client, "work", 1), WORK_DONE);
});

function document(name: string, workflow: string): string {
  return `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}, path: ${name}}\nworkflow:\n  ${workflow}\n`;
}

const POURED_BYTES_MAX = 512 * 1024 * 1024;

/** Sends a body of 10 GB, announced as such or piece by piece, until the server answers or closes; gives the answer's begin. */
async function pour(port: number, path: string, how: "announced" | "streamed"): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  let answer = "";
  let isOver = false;
  socket.setEncoding("utf8").on("data", (text: string) => {
    answer += text;
    isOver = true;
  });
  socket.on("error", () => undefined).on("close", () => (isOver = true));
  const length = how === "announced" ? "content-length: 10000000000" : "transfer-encoding: chunked";
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\n${length}\r\n\r\n`,
  );
  const piece = "x".repeat(65_536);
  const part = how === "announced" ? piece : `10000\r\n${piece}\r\n`;
  let sent = 0;
  while (!isOver && sent < POURED_BYTES_MAX) {
    const more = socket.write(part);
    sent += part.length;
    if (!more) await Promise.race([once(socket, "drain"), once(socket, "close"), once(socket, "data")]).catch(() => {});
  }
  socket.destroy();
  assert.ok(sent < POURED_BYTES_MAX, `The server read ${sent} bytes without an answer`);
  return answer;
}
