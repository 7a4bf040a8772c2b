import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { type Claimed, ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { attachedEnd, attachedReport, refOf } from "../../support/service/attached-report.ts";

// Large results that come with the report of their task, and are stored in the commit that writes its events.

const api = await openApi({ FLOW_RESULT_KV_MAX_BYTES: "400000" });
const work = workWith(api);
const { sql } = api.database;

/** An arc that reads what is in the payload alone: it is decided in the round that stores the payload. */
const READING = `  - step: start
    tool: { kind: noop }
    next: { arcs: [{ step: found, when: "{{ start.deep.list[2] == 'c' }}" }, { step: lost }] }
  - step: found
    tool: { kind: noop }
  - step: lost
    tool: { kind: noop }
`;

before(async () => {
  await work.register("a/one", ONE_STEP);
  await work.register("a/reading", READING);
});

/** A claimed command of a fresh execution. */
async function claimed(path = "a/one", worker = "w"): Promise<Claimed> {
  const id = await work.execute(path);
  for (;;) {
    const found = (await work.claim(worker, 100)).find(({ execution_id }) => execution_id === id);
    if (found !== undefined) return found;
  }
}

async function report(body: Body, payloads: readonly Buffer[], headers: Record<string, string> = {}) {
  const sent = attachedReport(body, payloads);
  const init = { method: "POST", body: sent.body, headers: { ...sent.headers, ...headers } };
  const answer = await api.open.request("/api/events/batch", init);
  return { status: answer.status, body: (await answer.json()) as Body };
}

/** The report of a command's end with one payload; `about` in place of what is said of it. */
function endWith(command: Claimed, payload: Buffer, about: Body = {}, more: Body = {}) {
  const attachment = { event: 0, ref: refOf(command), bytes: payload.length, ...about };
  return { worker: "w", events: attachedEnd(command, payload), attachments: [attachment], ...more };
}

/** A JSON text of some length that does not shrink. */
function payloadOf(bytes = 100_000): Buffer {
  return Buffer.from(
    JSON.stringify({ deep: { list: ["a", "b", "c"] }, noise: randomBytes(bytes / 2).toString("hex") }),
  );
}

async function storedOf({ execution_id }: Claimed) {
  const rows = await sql<{ state: string; bytes: string; sha256: string }[]>`
    select state, bytes, sha256 from flow.result where execution_id = ${execution_id} order by state`;
  return [...rows];
}

async function doneOf({ execution_id }: Claimed): Promise<Body> {
  const { body } = await work.get(`/api/executions/${execution_id}/events?event_type=task.done`);
  return (body["events"] as Body[])[0] ?? {};
}

test("a payload behind a report is stored byte for byte, and its event's reference says so", async () => {
  const command = await claimed();
  const payload = payloadOf();
  const { status, body } = await report(endWith(command, payload), [payload]);
  assert.equal(status, 202, JSON.stringify(body));
  const { body: end } = await work.get(`/api/executions/${command.execution_id}/result?wait_ms=5000`);
  assert.equal(end["status"], "COMPLETED");
  const found = await api.open.request(`/api/results/resolve?ref=${encodeURIComponent(refOf(command))}`);
  assert.deepEqual(Buffer.from(await found.arrayBuffer()), payload);
  const done = await doneOf(command);
  const { reference } = done["result"] as { reference: Body };
  const { expires_at, preview: _, ...rest } = reference;
  assert.ok(Date.parse(String(expires_at)) > Date.now());
  const sha256 = createHash("sha256").update(payload).digest("hex");
  assert.deepEqual(rest, {
    ...{ kind: "result_ref", ref: refOf(command), store: "kv", scope: "permanent", extracted: {} },
    meta: {
      ...{ content_type: "application/json", bytes: payload.length, sha256 },
      ...{ bucket: "flow.result", key: refOf(command), fields: ["deep"] },
    },
  });
});

test("what is decided in the same round reads the payload before it is written", async () => {
  for (const compression of ["none", "gzip"]) {
    const command = await claimed("a/reading");
    const payload = payloadOf(70_000);
    const sent = endWith(command, payload, { compression }, { claim: { limit: 1 } });
    const { body } = await report(sent, [payload]);
    const [next] = body["commands"] as Claimed[];
    assert.equal(next?.step, "found", JSON.stringify(body));
    const found = await api.open.request(`/api/results/resolve?ref=${encodeURIComponent(refOf(command))}`);
    assert.deepEqual(Buffer.from(await found.arrayBuffer()), payload, compression);
  }
});

test("payloads with controls that end texts elsewhere are stored as they are", async () => {
  // No JSON has them; a worker may send them all the same, beside the results of others in the same statement.
  for (const odd of ['"\u0000"', '"\u001e\u001e"', '"\\u001e"', '"é \ud83d\ude00"']) {
    const command = await claimed();
    const payload = Buffer.from(odd);
    const { status, body } = await report(endWith(command, payload), [payload]);
    assert.equal(status, 202, JSON.stringify(body));
    const [row] = await sql<{ payload: Buffer }[]>`
      select payload from flow.result where execution_id = ${command.execution_id}`;
    assert.deepEqual(Buffer.from(row?.payload ?? []), payload, odd);
  }
});

test("several payloads of several executions travel with one report", async () => {
  const [first, second] = [await claimed(), await claimed()];
  const [one, two] = [payloadOf(), payloadOf(66_000)];
  const events = [...attachedEnd(first, one), ...attachedEnd(second, two)];
  const attachments = [
    { event: 0, ref: refOf(first), bytes: one.length },
    { event: 2, ref: refOf(second), bytes: two.length },
  ];
  const { status } = await report({ worker: "w", events, attachments }, [one, two]);
  assert.equal(status, 202);
  assert.deepEqual(
    [
      (await storedOf(first)).map(({ bytes }) => Number(bytes)),
      (await storedOf(second)).map(({ bytes }) => Number(bytes)),
    ],
    [[one.length], [two.length]],
  );
});

test("the same report again is a duplicate; under the same key another payload is refused", async () => {
  const command = await claimed();
  const payload = payloadOf();
  const key = { "idempotency-key": "attached-1" };
  const sent = endWith(command, payload);
  const [first, again] = [await report(sent, [payload], key), await report(sent, [payload], key)];
  assert.deepEqual(
    [first.status, first.body["duplicate"], again.status, again.body["duplicate"]],
    [202, false, 202, true],
  );
  const other = Buffer.from(payload);
  other.write("0".repeat(64), payload.length - 100);
  assert.notDeepEqual(other, payload);
  assert.equal((await report(sent, [other], key)).status, 422);
  const sha256 = createHash("sha256").update(payload).digest("hex");
  assert.deepEqual(
    (await storedOf(command)).map((row) => row.sha256),
    [sha256],
  );
});

test("a report of a claim that was lost stores nothing", async () => {
  const command = await claimed();
  const payload = payloadOf();
  const sent = endWith(command, payload);
  const stale = { ...sent, events: sent.events.map((event) => ({ ...event, attempt: 7 })) };
  assert.equal((await report(stale, [payload])).status, 409);
  assert.equal((await report({ ...sent, worker: "thief" }, [payload])).status, 409);
  assert.deepEqual(await storedOf(command), []);
  assert.equal((await report(sent, [payload])).status, 202);
  // The command has ended: what comes late neither stores nor replaces anything.
  const late = payloadOf();
  assert.equal((await report(endWith(command, late), [late])).status, 409);
  const sha256 = createHash("sha256").update(payload).digest("hex");
  assert.deepEqual(
    (await storedOf(command)).map((row) => row.sha256),
    [sha256],
  );
});

test("a payload that an earlier attempt has stored elsewhere stays on record until it is removed", async () => {
  const command = await claimed();
  const { execution_id } = command;
  await sql`
    insert into flow.result (execution_id, ref, root_execution_id, state, store, scope, content_type, bytes, sha256, location)
    values (${execution_id}, ${refOf(command)}, ${execution_id}, 'stored', 'disk', 'permanent', 'application/json', 1,
      ${"a".repeat(64)}, '{"file":"gone"}')`;
  const payload = payloadOf();
  assert.equal((await report(endWith(command, payload), [payload])).status, 202);
  assert.deepEqual(
    (await storedOf(command)).map(({ state, bytes }) => [state, Number(bytes)]),
    [
      ["deleting", 1],
      ["stored", payload.length],
    ],
  );
});

test("what does not fit the report is refused, and nothing of the report is written", async () => {
  const [command, foreign] = [await claimed(), await claimed()];
  const payload = payloadOf(80_000);
  const sent = endWith(command, payload);
  const [attachment] = sent.attachments;
  const with_ = (about: Body) => ({ ...sent, attachments: [{ ...attachment, ...about }] });
  const inForeign = { ...sent, events: attachedEnd(command, payload, refOf(foreign)) };
  const cases: [string, Body, Buffer[], Record<string, string>?][] = [
    ["more bytes than announced", sent, [payload, Buffer.from("x")]],
    ["fewer bytes than announced", sent, [payload.subarray(1)]],
    ["no bytes", sent, []],
    ["bytes that nothing announces", { ...sent, attachments: [] }, [payload]],
    ["a negative length", with_({ bytes: -1 }), [payload]],
    ["a length beyond all numbers", with_({ bytes: 1e300 }), [payload]],
    ["a length that is no number", with_({ bytes: String(payload.length) }), [payload]],
    ["an event that is not there", with_({ event: 9 }), [payload]],
    ["an event without a result", with_({ event: 1 }), [payload]],
    ["another reference than the event's", with_({ ref: `${refOf(command)}1` }), [payload]],
    ["a text that is no reference", with_({ ref: "x" }), [payload]],
    [
      "a reference of another execution",
      { ...inForeign, attachments: [{ ...attachment, ref: refOf(foreign) }] },
      [payload],
    ],
    ["the same twice", { ...sent, attachments: [attachment, { ...attachment, bytes: 0 }] }, [payload]],
    ["a time that is none", with_({ ttl: "soon" }), [payload]],
    ["a compression that is none", with_({ compression: "zip" }), [payload]],
    ["a payload that is no JSON", sent, [Buffer.alloc(payload.length, "<")]],
    [
      "a payload that is no text",
      sent,
      [Buffer.concat([Buffer.from('"'), Buffer.alloc(payload.length - 2, 0xff), Buffer.from('"')])],
    ],
    ["a report that is longer than the body", sent, [payload], { "x-flow-report-bytes": "999999999" }],
    ["a report of no length", sent, [payload], { "x-flow-report-bytes": "-1" }],
    ["a report that is cut", sent, [payload], { "x-flow-report-bytes": "10" }],
  ];
  for (const [name, body, payloads, headers] of cases) {
    const { status, body: answer } = await report(body, payloads, headers);
    assert.ok(status === 400 || status === 422, `${name}: ${status} ${JSON.stringify(answer).slice(0, 300)}`);
  }
  // Longer than a row takes: it belongs into another store, which takes an upload.
  const long = payloadOf(500_000);
  const { status, body } = await report(endWith(command, long), [long]);
  assert.deepEqual([status, body["code"]], [422, "INVALID_INPUT"]);
  assert.match(String(body["error"]), /Store them with PUT \/api\/results/);
  assert.deepEqual([await storedOf(command), await storedOf(foreign)], [[], []]);
  assert.deepEqual(await doneOf(command), {});
  assert.equal((await report(sent, [payload])).status, 202);
});

test("a report and its payloads together are no longer than a batch may be", async () => {
  const command = await claimed();
  const payload = payloadOf(2 * 1024 ** 2);
  const { status, body } = await report(endWith(command, payload), [payload]);
  assert.deepEqual([status, body["code"]], [413, "TOO_LARGE"]);
});
