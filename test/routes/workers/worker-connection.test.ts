import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { createLogger } from "../../../src/platform/telemetry/logger.ts";
import { createMetrics } from "../../../src/platform/telemetry/metrics.ts";
import { type Listener, listen } from "../../../src/roles/http/listen.ts";
import { workerUpgrades } from "../../../src/roles/http/worker-connections.ts";
import { oddText } from "../../support/engine/odd-text.ts";
import { KIND, type MessageClient, openedMessages } from "../../support/servers/message-client.ts";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { type Claimed, endOf, ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";
import { type AttachedReport, attachedEnd, attachedReport, refOf } from "../../support/service/attached-report.ts";

/*
 * A call by message is answered as its route answers it over HTTP: every case here is made both ways, in the same state, and the
 * answers are compared.
 */

const api = await openApi();
const work = workWith(api);
const metrics = createMetrics();
const config = { batchBytesMax: 2 * 1024 ** 2 };
const PATHS = { claim: "/api/commands/claim", report: "/api/events/batch", heartbeat: "/api/worker/pool/heartbeat" };

type Kind = keyof typeof PATHS;
type Fields = Record<string, string>;

/** One way to make a call. `token`: default the workers'. */
interface Way {
  name: string;
  call(kind: Kind, body: unknown, fields?: Fields): Promise<Answer>;
}

interface Answer {
  status: number;
  body: Body;
  retryAfter: string | undefined;
}

let listener: Listener;
let client: MessageClient;
let operator: MessageClient;
const answers: string[] = [];

const textOf = (body: unknown) =>
  typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body);

function byHttp(token: string): Way {
  return {
    name: "http",
    async call(kind, body, fields = {}) {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...fields };
      const answer = await fetch(`${listener.url}${PATHS[kind]}`, { method: "POST", headers, body: textOf(body) });
      const retryAfter = answer.headers.get("retry-after") ?? undefined;
      return { status: answer.status, body: (await answer.json()) as Body, retryAfter };
    },
  };
}

function byMessage(messages: () => MessageClient): Way {
  return {
    name: "mess",
    async call(kind, body, fields) {
      const { status, fields: given, body: text } = await messages().call(KIND[kind], textOf(body), fields);
      return { status, body: JSON.parse(text) as Body, retryAfter: given["retry-after"] };
    },
  };
}

before(async () => {
  const app = api.guarded;
  const upgrades = workerUpgrades(app, { config, metrics, logger: createLogger("fatal", new PassThrough()) });
  listener = await listen(
    { fetch: app.fetch, malformed: () => new Response("malformed"), upgrades },
    { host: "127.0.0.1", port: 0 },
  );
  const port = Number(new URL(listener.url).port);
  client = await openedMessages({ port, headers: { authorization: `Bearer ${TOKENS.worker}` } });
  operator = await openedMessages({ port, headers: { authorization: `Bearer ${TOKENS.operator}` } });
  await work.register("m/one", ONE_STEP);
  await work.register("m/two", TWO_STEPS);
});
after(() => listener.close());

const WAYS = [byHttp(TOKENS.worker), byMessage(() => client)];

/** The same where ids, times, secrets, the way's own name and what else the server has to do are other ones. */
function alike({ status, body, retryAfter }: Answer): unknown {
  const text = JSON.stringify({ status, body, retryAfter })
    .replaceAll(/\d{12,}/g, "0")
    .replaceAll(/"(claim_secret|lease_expires_at|step_started_at|trust_domain)":"[^"]*"/g, '"$1":"…"')
    .replaceAll(/"queue_depth":\d+/g, '"queue_depth":0')
    .replaceAll(/\b(http|mess)-/g, "way-");
  return JSON.parse(text);
}

/** A worker that the server knows, and the header by which it shows that. */
async function registered(name: string): Promise<Fields> {
  const init = {
    method: "POST",
    headers: { authorization: `Bearer ${TOKENS.worker}`, "content-type": "application/json" },
    body: JSON.stringify({ name, capacity: 4 }),
  };
  const answer = await fetch(`${listener.url}/api/worker/pool/register`, init);
  const { worker_secret } = (await answer.json()) as { worker_secret: string };
  return { "x-flow-worker": worker_secret };
}

/** A claimed command of a new execution. */
async function claimed(name: string, own: Fields, path = "m/one"): Promise<Claimed & { claim_secret: string }> {
  for (;;) if ((await work.claim("drain", 100, 0)).length === 0) break;
  await work.execute(path);
  const { status, body } = await byHttp(TOKENS.worker).call("claim", { worker: name, limit: 1, wait_ms: 5_000 }, own);
  const [command] = (body["commands"] ?? []) as (Claimed & { claim_secret: string })[];
  assert.ok(command, `${status} ${JSON.stringify(body)}`);
  return command;
}

/** The end of a command whose result comes behind the report. */
function attachedBy(command: Claimed & { claim_secret: string }, worker: string): AttachedReport {
  const payload = Buffer.from(JSON.stringify({ deep: "é".repeat(40_000) }));
  const attachments = [{ event: 0, ref: refOf(command), bytes: payload.length }];
  const events = attachedEnd(command, payload);
  return attachedReport({ worker, events, attachments, claim_secrets: [command.claim_secret] }, [payload]);
}

/** Each gives the answer that is compared; `name` is of one worker alone. */
const CASES: Record<string, [status: number, make: (way: Way, name: string, own: Fields) => Promise<Answer>]> = {
  "a claim without commands": [
    200,
    async (way, name, own) => {
      for (;;) if ((await work.claim("drain", 100, 0)).length === 0) break;
      return way.call("claim", { worker: name, limit: 2 }, own);
    },
  ],
  "a claim that waits for a command": [
    200,
    async (way, name, own) => {
      for (;;) if ((await work.claim("drain", 100, 0)).length === 0) break;
      const waiting = way.call("claim", { worker: name, limit: 1, wait_ms: 20_000 }, own);
      await work.execute("m/one");
      return waiting;
    },
  ],
  "a claim without the secret of its worker": [403, (way, name) => way.call("claim", { worker: name, limit: 1 })],
  "a claim with a wrong secret": [
    403,
    (way, name) => way.call("claim", { worker: name, limit: 1 }, { "x-flow-worker": "a.b.c" }),
  ],
  "a claim of another worker's name": [403, (way, _, own) => way.call("claim", { worker: "other", limit: 1 }, own)],
  "a claim of nothing": [422, (way, name, own) => way.call("claim", { worker: name, limit: 0 }, own)],
  "a claim that is no JSON": [422, (way, _, own) => way.call("claim", "{", own)],
  "an empty claim": [422, (way, _, own) => way.call("claim", "", own)],
  "a claim that is no UTF-8": [422, (way, _, own) => way.call("claim", "\u{d800}[", own)],
  "a claim that is nested too deep": [422, (way, _, own) => way.call("claim", "[".repeat(100_000), own)],
  "a claim with an infinite number": [422, (way, _, own) => way.call("claim", '{"limit":1e999}', own)],
  "a claim of the longest body": [422, (way, _, own) => way.call("claim", " ".repeat(2 * 1024 ** 2), own)],
  "a claim of one byte more": [413, (way, _, own) => way.call("claim", " ".repeat(2 * 1024 ** 2 + 1), own)],
  "a report of one byte too many": [413, (way, _, own) => way.call("report", " ".repeat(2 * 1024 ** 2 + 1), own)],
  "a report that is far too long": [413, (way, _, own) => way.call("report", " ".repeat(9 * 1024 ** 2), own)],
  "a report": [
    202,
    async (way, name, own) => {
      const command = await claimed(name, own);
      const body = { worker: name, events: endOf(command), claim_secrets: [command.claim_secret] };
      return way.call("report", body, { ...own, "idempotency-key": `${name}-1` });
    },
  ],
  "a report that brings the next command": [
    202,
    async (way, name, own) => {
      const command = await claimed(name, own, "m/two");
      const claim = { limit: 1, wait_ms: 5_000 };
      const body = { worker: name, events: endOf(command), claim_secrets: [command.claim_secret], claim };
      return way.call("report", body, { ...own, "idempotency-key": `${name}-2` });
    },
  ],
  "a report that is sent twice": [
    202,
    async (way, name, own) => {
      const command = await claimed(name, own);
      const body = { worker: name, events: endOf(command), claim_secrets: [command.claim_secret] };
      const fields = { ...own, "idempotency-key": `${name}-3` };
      await way.call("report", body, fields);
      return way.call("report", body, { ...fields, "x-flow-unanswered": "1" });
    },
  ],
  "a report under a key that was used for another": [
    422,
    async (way, name, own) => {
      const command = await claimed(name, own);
      const body = { worker: name, events: endOf(command), claim_secrets: [command.claim_secret] };
      const fields = { ...own, "idempotency-key": `${name}-4` };
      await way.call("report", body, fields);
      return way.call("report", { ...body, events: endOf(command, "other") }, fields);
    },
  ],
  "a report of a command that has ended": [
    409,
    async (way, name, own) => {
      const command = await claimed(name, own);
      const body = { worker: name, events: endOf(command), claim_secrets: [command.claim_secret] };
      await way.call("report", body, own);
      return way.call("report", body, own);
    },
  ],
  "a report without the secret of its claim": [
    403,
    async (way, name, own) => way.call("report", { worker: name, events: endOf(await claimed(name, own)) }, own),
  ],
  "a report with the secret of its claim as a field": [
    202,
    async (way, name, own) => {
      const command = await claimed(name, own);
      return way.call("report", { worker: name, events: endOf(command) }, { "x-flow-claim": command.claim_secret });
    },
  ],
  "a report with a key that is too long": [
    422,
    async (way, name, own) => {
      const command = await claimed(name, own);
      const body = { worker: name, events: endOf(command), claim_secrets: [command.claim_secret] };
      return way.call("report", body, { "idempotency-key": "k".repeat(300) });
    },
  ],
  "a report with a large result behind it": [
    202,
    async (way, name, own) => {
      const command = await claimed(name, own);
      const sent = attachedBy(command, name);
      return way.call("report", sent.body, { ...own, ...sent.headers, "idempotency-key": `${name}-5` });
    },
  ],
  "a report whose large result is shorter than it says": [
    422,
    async (way, name, own) => {
      const sent = attachedBy(await claimed(name, own), name);
      return way.call("report", sent.body.subarray(0, -1), { ...own, ...sent.headers });
    },
  ],
  "a report with a large result and no word of where it begins": [
    422,
    async (way, name, own) => way.call("report", attachedBy(await claimed(name, own), name).body, own),
  ],
  "a report of too many events": [
    413,
    (way, name) => way.call("report", { worker: name, events: Array.from({ length: 257 }, () => ({})) }),
  ],
  "a report of events that are none": [422, (way, name) => way.call("report", { worker: name, events: [{}, 1] })],
  "a heartbeat": [200, (way, name, own) => way.call("heartbeat", { name, running: [] }, own)],
  "a heartbeat that is held": [200, (way, name, own) => way.call("heartbeat", { name, running: [], wait_ms: 50 }, own)],
  "a heartbeat of what is lost": [
    200,
    (way, name, own) => way.call("heartbeat", { name, running: [{ command_id: "4711", attempt: 1 }] }, own),
  ],
  "a heartbeat without a name": [422, (way, _, own) => way.call("heartbeat", { running: [] }, own)],
  "a heartbeat of a worker that never registered": [
    404,
    (way, name) => {
      const secret = api.service.claimSecrets.ofWorker(`${name}-new`, "instance");
      return way.call("heartbeat", { name: `${name}-new`, running: [] }, { "x-flow-worker": secret });
    },
  ],
};

for (const [what, [status, make]] of Object.entries(CASES)) {
  test(`${what} is answered by message as by HTTP`, async () => {
    const seen: unknown[] = [];
    for (const way of WAYS) {
      const name = `${way.name}-${answers.length}`;
      answers.push(name);
      const answer = await make(way, name, await registered(name));
      assert.equal(answer.status, status, JSON.stringify(answer.body).slice(0, 500));
      // Names count up: what differs by that is no difference.
      seen.push(JSON.parse(JSON.stringify(alike(answer)).replaceAll(/way-\d+/g, "way-n")));
    }
    assert.deepEqual(seen[1], seen[0]);
  });
}

const VALID: Record<Kind, Body> = {
  claim: { worker: "w", limit: 1 },
  report: { worker: "w", events: [{ event_type: "command.completed", command_id: "4711", attempt: 1 }] },
  heartbeat: { name: "w", running: [] },
};
const anyKind = fc.constantFrom<Kind>("claim", "report", "heartbeat");
/** A good body, in which some keys have any value. */
const bentBody = fc.tuple(
  anyKind,
  fc.record(
    {
      worker: fc.oneof(oddText, fc.constant("w")),
      name: oddText,
      limit: fc.oneof(fc.integer(), fc.double(), oddText),
      kinds: fc.jsonValue(),
      events: fc.oneof(fc.array(fc.jsonValue(), { maxLength: 3 }), fc.jsonValue()),
      running: fc.oneof(fc.array(fc.jsonValue(), { maxLength: 3 }), fc.jsonValue()),
      claim: fc.jsonValue(),
      claim_secrets: fc.oneof(fc.array(fc.string(), { maxLength: 3 }), fc.jsonValue()),
    },
    { requiredKeys: [] },
  ),
);
const anyBody = fc.oneof(
  anyKind.map((kind) => [kind, textOf(VALID[kind])] as const),
  bentBody.map(([kind, bent]) => [kind, textOf({ ...VALID[kind], ...bent })] as const),
  fc.tuple(anyKind, fc.oneof(fc.jsonValue().map(textOf), oddText)),
);
const anyFields = fc.record(
  {
    "idempotency-key": fc.string({ maxLength: 300 }),
    "x-flow-worker": fc.string({ maxLength: 20 }),
    "x-flow-unanswered": fc.string({ maxLength: 3 }),
    "x-flow-claim": fc.string({ maxLength: 20 }),
  },
  { requiredKeys: [] },
);

test("whatever a call says, by message it is answered as by HTTP", async () => {
  const statuses = new Map<number, number>();
  const run = fc.asyncProperty(anyBody, anyFields, fc.boolean(), async ([kind, body], fields, isOperator) => {
    const ways = isOperator ? [byHttp(TOKENS.operator), byMessage(() => operator)] : WAYS;
    const seen: unknown[] = [];
    for (const way of ways) {
      const answer = await way.call(kind, body, fields);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      seen.push(alike(answer));
    }
    assert.deepEqual(seen[1], seen[0]);
  });
  await fc.assert(run, { numRuns: Number(process.env["FLOW_PROPERTY_RUNS"] ?? 200) });
  assert.ok(
    [200, 403, 404, 422].every((status) => statuses.has(status)),
    JSON.stringify([...statuses]),
  );
});

test("calls by message are counted and logged as those of their routes", async () => {
  const before = api.log().length;
  await client.call(KIND.claim, "{}", { "x-flow-worker": "x" });
  const lines = api.log().slice(before);
  assert.match(lines, /"status":422.*"msg":"POST \/api\/commands\/claim 422"/);
  const text = await (await api.open.request("/metrics")).text();
  assert.match(
    text,
    /flow_http_request_duration_seconds_count\{method="POST",route="POST \/api\/commands\/claim",status="422"\}/,
  );
});

test("calls are answered in any order, many at a time", async () => {
  const own = await registered("order");
  const order: string[] = [];
  const slow = client
    .call(KIND.claim, JSON.stringify({ worker: "order", limit: 1, wait_ms: 30_000, kinds: ["none"] }), own, 0xffff_fff0)
    .then((answer) => {
      order.push("slow");
      return answer;
    });
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      await client.call(KIND.heartbeat, JSON.stringify({ name: "order", running: [] }), own);
      order.push("quick");
    }),
  );
  assert.equal(order.includes("slow"), false);
  // Withdrawn: it holds nothing, and its answer comes at once.
  client.socket.write(Buffer.from("0000000910fffffff000000000", "hex"));
  assert.deepEqual(JSON.parse((await slow).body), { commands: [] });
});
