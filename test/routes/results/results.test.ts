import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { before, test } from "node:test";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { type Claimed, ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi({ FLOW_RESULT_BYTES_MAX: "3000000" });
const work = workWith(api);

before(() => work.register("r", ONE_STEP));

async function claimed(): Promise<Claimed> {
  const id = await work.execute("r");
  for (;;) {
    const found = (await work.claim("w", 100)).find(({ execution_id }) => execution_id === id);
    if (found !== undefined) return found;
  }
}

function refOf({ execution_id }: Claimed, name = "t"): string {
  return `noetl://execution/${execution_id}/step/start/task/${name}/run/1`;
}

function put(command: Claimed, json: string | ReadableStream<Uint8Array>, more: Record<string, string> = {}) {
  const { command_id, attempt } = command;
  const query = new URLSearchParams({
    ref: refOf(command),
    worker: "w",
    command_id,
    attempt: String(attempt),
    ...more,
  });
  const body = typeof json === "string" ? { body: json } : { body: json, duplex: "half" };
  return api.open.request(`/api/results?${query}`, { method: "PUT", ...body } as RequestInit);
}

const resolve = (ref: string, path = "/results/resolve") => api.open.request(`${path}?${new URLSearchParams({ ref })}`);

test("a stored payload is read back byte for byte, at both addresses, small or compressed or in a file", async () => {
  for (const json of [
    '{"z": 1, "a":  [ 1.0, "\\u0000" ]}',
    JSON.stringify({ rows: Array.from({ length: 2_000 }, (_, id) => ({ id, name: `row ${id}` })) }),
    JSON.stringify(createHash("sha512").update("x").digest("base64").repeat(200)),
    JSON.stringify("é".repeat(700_000)),
  ]) {
    const command = await claimed();
    const saved = await put(command, json);
    const body = (await saved.json()) as Body;
    assert.equal(saved.status, 200, JSON.stringify(body));
    const bytes = Buffer.byteLength(json);
    assert.deepEqual([body["bytes"], body["store"]], [bytes, bytes > 1_048_576 ? "disk" : "kv"]);
    assert.equal(body["sha256"], createHash("sha256").update(json).digest("hex"));
    const days = (Date.parse(String(body["expires_at"])) - Date.now()) / 86_400_000;
    assert.ok(days > 29.9 && days < 30.1);
    for (const path of ["/results/resolve", "/api/results/resolve"]) {
      const read = await resolve(refOf(command), path);
      assert.equal(read.headers.get("content-type"), "application/json");
      assert.equal(await read.text(), json);
    }
  }
});

test("bytes of any kind are kept as they are, whether PostgreSQL could hold them as text or not", async () => {
  for (const bytes of [
    Buffer.from("\\x41 \\\\ 'quoted' \ufeff \u{1f600} \u0080 \uffff \u001e"),
    Buffer.from("before\0after"),
    Buffer.from([0xff, 0xfe, 0x00, 0x80]),
    // Half a pair of surrogates as three bytes, and an overlong form: no UTF-8.
    Buffer.from([0xed, 0xa0, 0x80]),
    Buffer.from([0xc0, 0x80]),
    Buffer.alloc(0),
    Buffer.from(Array.from({ length: 65_536 }, (_, index) => index & 0xff)),
  ]) {
    const command = await claimed();
    const saved = await put(command, new Blob([bytes]).stream(), { content_type: "application/octet-stream" });
    assert.equal(saved.status, 200, await saved.text());
    const read = await resolve(refOf(command));
    assert.deepEqual(Buffer.from(await read.arrayBuffer()), bytes);
  }
});

test("saving again replaces, from the database to a file and back, and leaves no file behind", async () => {
  const command = await claimed();
  const long = JSON.stringify("y".repeat(1_500_000));
  const files = async () =>
    (await readdir(api.resultsFolder, { recursive: true })).filter((name) => name.endsWith(".json")).length;
  const before = await files();
  for (const json of ['"first"', long, '"third"']) {
    assert.equal((await put(command, json)).status, 200);
    assert.equal(await (await resolve(refOf(command))).text(), json);
    assert.equal(await files(), before + Number(json === long));
  }
});

test("a lost or unknown claim stores nothing: 409", async () => {
  const command = await claimed();
  const other = await claimed();
  const long = JSON.stringify("z".repeat(1_500_000));
  for (const json of ['"x"', long]) {
    for (const more of [
      { attempt: "2" },
      { worker: "x" },
      { command_id: "4711" },
      { command_id: other.command_id },
      { ref: refOf(other) },
    ] as Record<string, string>[]) {
      const response = await put(command, json, more);
      assert.equal(response.status, 409, JSON.stringify(more));
      assert.equal(((await response.json()) as Body)["code"], "CONFLICT");
    }
  }
  for (const one of [command, other]) assert.equal((await resolve(refOf(one))).status, 404);
  assert.deepEqual(
    (await readdir(api.resultsFolder)).filter((name) => name.endsWith(".part")),
    [],
  );
  await put(command, '"kept"');
  await work.finish("w", command);
  await work.get(`/api/executions/${command.execution_id}/result?wait_ms=5000`);
  assert.equal((await put(command, '"late"')).status, 409);
  assert.equal(await (await resolve(refOf(command))).text(), '"kept"');
});

test("what is no JSON text, no reference or no time is 422", async () => {
  const command = await claimed();
  for (const [json, more] of [
    ["", {}],
    ["plain text", {}],
    ["\u0000", {}],
    // Cut off on its way.
    ['{"rows": [1, 2', {}],
    ['"tex', {}],
    ["1", { ref: "file:///etc/passwd" }],
    ["1", { ref: "noetl://execution/x/step" }],
    ["1", { ref: `${refOf(command)}/\u00e9` }],
    ["1", { ref: refOf(command, "t".repeat(3_000)) }],
    ["1", { attempt: "0" }],
    ["1", { command_id: "x" }],
    ["1", { scope: "forever" }],
    ["1", { ttl: "soon" }],
  ] as [string, Record<string, string>][]) {
    const response = await put(command, json, more);
    const body = (await response.json()) as Body;
    assert.deepEqual([response.status, body["code"]], [422, "INVALID_INPUT"], JSON.stringify([json, more]));
  }
  const query = new URLSearchParams({ ref: refOf(command), command_id: command.command_id, attempt: "1" });
  const notUtf8 = await api.open.request(`/api/results?${query}`, {
    method: "PUT",
    body: Buffer.from([0x22, 0xff, 0x22]),
  });
  assert.equal(notUtf8.status, 422);
});

test("a payload beyond the limit is 413, whether it says its length or not, and leaves nothing behind", async () => {
  const command = await claimed();
  assert.equal((await put(command, JSON.stringify("x".repeat(3_000_001)))).status, 413);
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 100_000;
      controller.enqueue(new Uint8Array(100_000).fill(0x31));
    },
  });
  assert.equal((await put(command, endless)).status, 413);
  assert.ok(sent < 4_000_000);
  assert.equal((await resolve(refOf(command))).status, 404);
  assert.deepEqual(
    (await readdir(api.resultsFolder)).filter((name) => name.endsWith(".part")),
    [],
  );
});

test("a reference is 404 when it is unknown, expired, damaged, or no reference at all", async () => {
  const command = await claimed();
  await put(command, '"short-lived"', { ttl: "90s" });
  const { sql } = api.database;
  await sql`update flow.result set expires_at = now() where ref = ${refOf(command)}`;
  const expired = await resolve(refOf(command));
  assert.equal(expired.status, 404);
  const { code, error } = (await expired.json()) as Body;
  assert.equal(code, "REFERENCE_NOT_AVAILABLE");
  assert.match(String(error), /its time is over/);
  assert.equal(await api.service.results.removeExpired(100), 1);
  assert.match(await (await resolve(refOf(command))).text(), /never stored or has been deleted/);
  await put(command, '"whole"');
  await sql`update flow.result set payload = 'other' where ref = ${refOf(command)}`;
  assert.match(await (await resolve(refOf(command))).text(), /sha256 differs/);
  for (const ref of ["x", "noetl://execution/1/x", "noetl://execution/1/../../etc/passwd", "\u0000"]) {
    assert.equal((await resolve(ref)).status, 404, ref);
  }
  assert.equal((await api.open.request("/results/resolve")).status, 422);
});

test("deleting an execution deletes its results, files too", async () => {
  const command = await claimed();
  await put(command, JSON.stringify("x".repeat(1_500_000)));
  await work.post(`/api/executions/${command.execution_id}/cancel`);
  const files = async () =>
    (await readdir(api.resultsFolder, { recursive: true })).filter((name) => name.endsWith(".json")).length;
  const before = await files();
  assert.equal((await work.send("DELETE", `/api/executions/${command.execution_id}`)).status, 200);
  assert.equal(await files(), before - 1);
  assert.equal((await resolve(refOf(command))).status, 404);
});

test("results are for operators, and for workers in the name of a claim", async () => {
  for (const [authorization, status] of [
    [undefined, 401],
    [`Bearer ${TOKENS.worker}`, 403],
    [`Bearer ${TOKENS.operator}`, 404],
  ] as const) {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    const path = "/results/resolve?ref=noetl%3A%2F%2Fexecution%2F1%2Fx";
    assert.equal((await api.guarded.request(path, { headers })).status, status);
  }
});
