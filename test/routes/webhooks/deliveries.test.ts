import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";

/* Deliveries of webhooks through the API, on PostgreSQL (control, rules 39 to 43). */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
const { sql } = api.database;

const ECHO = "{ kind: noop, result: { got: '{{ workload.got }}' } }";

/** A playbook with one webhook; `{section}` has no path. Gives the path of the playbook. */
async function register(
  hook: string,
  section: string,
  { input = "{}", tool = ECHO, status = 200 } = {},
): Promise<Body> {
  const path = `hooks/${hook.replaceAll("/", "_")}`;
  const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: h, path: ${path} }
workload: { got: none }
workflow:
  - { step: start, tool: ${tool} }
triggers:
  - name: pushed
    webhook: { path: ${hook}, ${section} }
    input: ${input}
`;
  const answer = await work.post("/api/catalog/register", { content });
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  return answer.body;
}

async function credential(name: string, data: Body, playbooks = ["hooks/**", "examples/**"]): Promise<void> {
  const meta = { meta: { playbooks } };
  const { status, body } = await work.post("/api/credentials", { name, type: "custom", data, ...meta });
  assert.equal(status, 201, JSON.stringify(body));
}

interface Answer {
  status: number;
  body: Body;
  headers: Headers;
}

/** A delivery, without a token. */
async function deliver(
  hook: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
  method = "POST",
): Promise<Answer> {
  const response = await api.guarded.request(`/hooks/${hook}`, { method, body, headers });
  return { status: response.status, body: (await response.json()) as Body, headers: response.headers };
}

const json = (value: unknown, headers: Record<string, string> = {}) =>
  [JSON.stringify(value), { "content-type": "application/json", ...headers }] as const;

function signed(body: string, secret = "s3cret", headers: Record<string, string> = {}) {
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  return { "content-type": "application/json", "x-hub-signature-256": signature, ...headers };
}

async function fires(hook: string): Promise<Body[]> {
  const { body } = await work.get(`/api/triggers?path=hooks/${hook.replaceAll("/", "_")}`);
  const [trigger] = body["triggers"] as Body[];
  const answer = await work.get(`/api/triggers/${trigger?.["trigger_id"]}/fires`);
  return answer.body["fires"] as Body[];
}

async function triggerId(hook: string): Promise<string> {
  const { body } = await work.get(`/api/triggers?path=hooks/${hook.replaceAll("/", "_")}`);
  return String((body["triggers"] as Body[])[0]?.["trigger_id"]);
}

await credential("github_hook", { secret: "s3cret" });

test("a signed delivery starts the playbook with what it says, once however often it comes", async () => {
  const section = "verify: { preset: github, secret: github_hook }, respond: { result: { timeout: 10s } }";
  const input = `{ got: { after: "{{ body.after }}", event: "{{ headers['x-github-event'] }}", q: "{{ query.q }}",
      method: "{{ method }}", by: "{{ trigger.name }}/{{ trigger.kind }}" } }`;
  await register("github/first", section, { input });
  const body = JSON.stringify({ after: "abc" });
  const headers = signed(body, "s3cret", { "x-github-event": "push", "x-github-delivery": "d-1" });
  const first = await deliver("github/first?q=7", body, headers);
  assert.equal(first.status, 200, JSON.stringify(first.body));
  assert.equal(first.body["status"], "COMPLETED");
  const got = { after: "abc", event: "push", q: "7", method: "POST", by: "pushed/webhook" };
  assert.deepEqual(first.body["result"], { got });
  const again = await deliver("github/first?q=7", body, headers);
  assert.deepEqual([again.status, again.body["duplicate"]], [200, true]);
  assert.equal(again.body["execution_id"], first.body["execution_id"]);
  const other = await deliver("github/first", body, { ...headers, "x-github-delivery": "d-2" });
  assert.notEqual(other.body["execution_id"], first.body["execution_id"]);
  const detail = await work.get(`/api/executions/${first.body["execution_id"]}`);
  const startedBy = detail.body["started_by"] as Body;
  assert.deepEqual([startedBy["kind"], startedBy["name"]], ["trigger", "pushed"]);
  assert.deepEqual(
    (await fires("github/first")).map(({ status }) => status),
    ["started", "started"],
  );
});

test("the use of the credential is in the audit log, as the playbook's; one for others is none", async () => {
  const rows =
    await sql`select result, rule, actor from auth.audit_log where action = 'credential.read' and resource = 'credential/github_hook'`;
  assert.deepEqual({ ...rows[0] }, { result: "allow", rule: "trigger", actor: "trigger/hooks/github_first/pushed" });
  assert.ok(rows.length <= 3, "what was read a moment ago is not read for each delivery");
  await credential("of_others", { secret: "s3cret" }, ["other/**"]);
  await register("not/mine", "verify: { preset: github, secret: of_others }");
  const refused = await deliver("not/mine", "{}", signed("{}"));
  assert.equal(refused.status, 401);
  assert.match(api.log(), /./);
});

test("an unsigned, forged or altered delivery is refused without a hint, whatever is wrong", async () => {
  await register("gh", "verify: { preset: github, secret: github_hook }");
  await register("no/secret", "verify: { preset: github, secret: nothing_of_that_name }");
  const refusals = [
    await deliver("gh", "{}"),
    await deliver("gh", "{}", signed("{}", "other")),
    await deliver("gh", '{"a":1}', signed("{}")),
    await deliver("gh", "{}", { "x-hub-signature-256": "sha256=zz" }),
    await deliver("no/secret", "{}", signed("{}")),
    await deliver("gh", "{}", { authorization: `Bearer ${TOKENS.operator}` }),
  ];
  for (const { status, body } of refusals) {
    const { request_id: _id, ...rest } = body;
    assert.deepEqual([status, rest], [401, { error: "The delivery is not accepted", code: "UNAUTHENTICATED" }]);
  }
  assert.deepEqual(await fires("gh"), []);
  assert.equal((await deliver("gh", "{}", signed("{}"))).status, 202);
});

test("a rotated secret: both are taken while both are named", async () => {
  await credential("new_hook", { secret: "newer" });
  await register("rotated", "verify: { preset: github, secret: [new_hook, github_hook] }");
  for (const secret of ["newer", "s3cret"]) {
    const answer = await deliver("rotated", "{}", signed("{}", secret));
    assert.equal(answer.status, 202, secret);
  }
  assert.equal((await deliver("rotated", "{}", signed("{}", "third"))).status, 401);
});

test("bearer, basic and gitlab show what their credential has", async () => {
  await credential("hook_token", { token: "t0ken" });
  await credential("hook_login", { username: "ann", password: "pw" });
  await register("bearer", "verify: { preset: bearer, secret: hook_token }");
  await register("basic", "verify: { preset: basic, secret: hook_login }");
  await register("gitlab", "verify: { preset: gitlab, secret: hook_token }");
  const basic = `Basic ${Buffer.from("ann:pw").toString("base64")}`;
  assert.equal((await deliver("bearer", "{}", { authorization: "Bearer t0ken" })).status, 202);
  assert.equal((await deliver("basic", "{}", { authorization: basic })).status, 202);
  assert.equal((await deliver("gitlab", "{}", { "x-gitlab-token": "t0ken" })).status, 202);
  assert.equal((await deliver("bearer", "{}", { authorization: "Bearer other" })).status, 401);
  assert.equal((await deliver("basic", "{}", { authorization: "Basic b3RoZXI6cHc=" })).status, 401);
  assert.equal((await deliver("gitlab", "{}", { "x-gitlab-token": "other" })).status, 401);
});

test("a path that is unknown, disabled or of a deleted trigger is the same 404", async () => {
  await register("off", "verify: none");
  await work.post(`/api/triggers/${await triggerId("off")}/disable`, {});
  const refused = [await deliver("off", "{}"), await deliver("of/nothing", "{}")];
  for (const { status, body } of refused) {
    assert.equal(status, 404);
    assert.match(String(body["error"]), /^There is no webhook 'of/);
  }
  const method = await api.guarded.request("/hooks/off");
  assert.equal(method.status, 401, "another method is no route, of which nobody without a token learns");
});

test("`when` and an empty key skip with 200, a template that fails is 422; each is a row to look at", async () => {
  await register("judged", `verify: none, when: "{{ body.n / body.d == 2 }}", deduplicate: "{{ body.key }}"`);
  const skipped = await deliver("judged", ...json({ n: 1, d: 1, key: "a" }));
  assert.deepEqual([skipped.status, skipped.body], [200, { skipped: true, reason: "Its `when` does not hold" }]);
  const keyless = await deliver("judged", ...json({ n: 2, d: 1 }));
  assert.deepEqual([keyless.status, keyless.body["skipped"]], [200, true]);
  const failed = await deliver("judged", ...json({ n: 2, d: 0, key: "b" }));
  assert.equal(failed.status, 422, JSON.stringify(failed.body));
  assert.match(String(failed.body["error"]), /started nothing: A template of the webhook failed/);
  const started = await deliver("judged", ...json({ n: 2, d: 1, key: "c" }));
  const repeated = await deliver("judged", ...json({ n: 4, d: 2, key: "c" }));
  assert.equal(started.status, 202);
  assert.equal(repeated.body["execution_id"], started.body["execution_id"]);
  const found = (await fires("judged")).map(({ status, reason }) => [status, String(reason ?? "").slice(0, 20)]);
  assert.deepEqual(found, [
    ["started", ""],
    ["failed", "A template of the we"],
    ["skipped", "Its `deduplicate` gi"],
    ["skipped", "Its `when` does not "],
  ]);
});

test("an input that cannot be rendered is 422 and a failed fire", async () => {
  await register("broken", "verify: none", { input: '{ got: "{{ body.n / 0 }}" }' });
  const failed = await deliver("broken", ...json({ n: 1 }));
  assert.equal(failed.status, 422);
  assert.deepEqual(
    (await fires("broken")).map(({ status }) => status),
    ["failed"],
  );
});

test("without a delivery id each delivery starts; with one it counts for a day", async () => {
  await register("plain", "verify: none");
  const ids = [await deliver("plain", "{}"), await deliver("plain", "{}")].map(({ body }) => body["execution_id"]);
  assert.notEqual(ids[0], ids[1]);
  const keyed = () => deliver("plain", "{}", { "idempotency-key": "k" });
  const first = (await keyed()).body["execution_id"];
  assert.equal((await keyed()).body["execution_id"], first);
  const age = (interval: string) =>
    sql`update flow.trigger_fire set fired_at = fired_at - ${interval}::interval where trigger_id = ${id}`;
  const id = await triggerId("plain");
  await age("23 hours 59 minutes");
  assert.equal((await keyed()).body["execution_id"], first, "within a day");
  await age("1 minute");
  const next = (await keyed()).body["execution_id"];
  assert.notEqual(next, first, "after a day it is another delivery");
  assert.equal((await keyed()).body["execution_id"], next, "which counts for a day again");
});

test("deliveries that come at once each start their own, one key one, and none is refused for another", async () => {
  await register("many/at/once", `verify: none, deduplicate: "{{ body.id }}"`, {
    input: `{ got: "{{ 1 // body.by }}" }`,
  });
  // By 0 nothing can be divided: that delivery fails among the others. Each second id comes twice.
  const ids = Array.from({ length: 60 }, (_, index) => (index % 4 === 3 ? index - 1 : index));
  const answers = await Promise.all(
    ids.map((id) => deliver("many/at/once", ...json({ id: `d-${id}`, by: id === 20 ? 0 : 1 }))),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    ids.map((id) => (id === 20 ? 422 : 202)),
  );
  const started = new Map<number, Set<unknown>>();
  for (const [index, id] of ids.entries())
    if (id !== 20) started.set(id, (started.get(id) ?? new Set()).add(answers[index]?.body["execution_id"]));
  for (const [id, executions] of started) assert.equal(executions.size, 1, `Delivery ${id}`);
  const all = new Set([...started.values()].flatMap((executions) => [...executions]));
  assert.deepEqual([all.size, all.has(undefined)], [started.size, false]);
  const rows = await sql`select from flow.execution where path = 'hooks/many_at_once'`;
  assert.equal(rows.length, started.size);
});

test("a delivery that the database refuses takes no other one with it", async () => {
  await register("refused/one", "verify: none");
  await sql`alter table flow.trigger_fire add constraint none_of_these check (key <> 'delivery/bad')`;
  try {
    const send = (key: string) => deliver("refused/one", ...json({}, { "idempotency-key": key }));
    const answers = await Promise.all(["a", "b", "bad", "c", "d"].map(send));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [202, 202, 500, 202, 202],
    );
  } finally {
    await sql`alter table flow.trigger_fire drop constraint none_of_these`;
  }
});

test("a body is JSON, a form or text, by what it is and what it says", async () => {
  await register("bodies", "verify: none, respond: result", { input: '{ got: "{{ body }}" }' });
  const result = async (body: string | Buffer, type?: string) => {
    const answer = await deliver("bodies", body, type === undefined ? {} : { "content-type": type });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return (answer.body["result"] as Body)["got"];
  };
  assert.deepEqual(await result('{"a":[1]}', "application/json; charset=utf-8"), { a: [1] });
  assert.deepEqual(await result('{"a":[1]}', "application/vnd.api+json"), { a: [1] });
  assert.deepEqual(await result('{"a":1}', "application/x-www-form-urlencoded"), { a: 1 }, "as curl -d sends it");
  assert.deepEqual(await result("a=1&b=x+y&a=2", "application/x-www-form-urlencoded"), { a: "2", b: "x y" });
  assert.equal(await result("plain", "text/plain"), "plain");
  assert.equal(await result("{not json", "text/plain"), "{not json");
  const refused = await deliver("bodies", "{", { "content-type": "application/json" });
  assert.equal(refused.status, 422);
});

test("`respond: result` answers 502 for a failed execution, and 202 where it takes longer", async () => {
  await register("fails", "verify: none, respond: result", { tool: "{ kind: noop, result: '{{ 1 / 0 }}' }" });
  const failed = await deliver("fails", "{}");
  assert.deepEqual([failed.status, failed.body["status"]], [502, "FAILED"], JSON.stringify(failed.body));
  await register("slow", "verify: none, respond: { result: { timeout: 1s } }", { tool: "{ kind: wait, for: 1h }" });
  const slow = await deliver("slow", "{}");
  assert.equal(slow.status, 202);
  assert.equal(typeof slow.body["execution_id"], "string");
  assert.equal(slow.body["result"], undefined);
});

test("two playbooks cannot have one path; the first keeps it", async () => {
  await register("taken", "verify: none");
  const other = {
    content: `apiVersion: flow/v2
kind: Playbook
metadata: { name: other, path: hooks/other }
workflow: [{ step: start, tool: { kind: noop } }]
triggers: [{ name: t, webhook: { path: taken, verify: none } }]
`,
  };
  assert.equal((await work.post("/api/catalog/register", other)).status, 409);
  assert.equal((await deliver("taken", "{}")).status, 202);
});

test("a body of 1 MiB is taken, a byte more is not, announced or not", async () => {
  await register("large", "verify: none");
  const text = (length: number) => Buffer.alloc(length, "x");
  assert.equal((await deliver("large", text(1_048_576))).status, 202);
  assert.equal((await deliver("large", text(1_048_577))).status, 413);
  const announced = { "content-length": "1048577" };
  assert.equal((await deliver("large", "x", announced)).status, 413);
});

test("Slack's question whether the address is ours is answered when it is signed, and starts nothing", async () => {
  await register("slack", "verify: { preset: slack, secret: github_hook }");
  const body = JSON.stringify({ type: "url_verification", challenge: "3eZbrw1a" });
  const at = String(Math.floor(Date.now() / 1_000));
  const signature = `v0=${createHmac("sha256", "s3cret").update(`v0:${at}:${body}`).digest("hex")}`;
  const headers = { "x-slack-request-timestamp": at, "x-slack-signature": signature };
  const answer = await deliver("slack", body, headers);
  assert.deepEqual([answer.status, answer.body], [200, { challenge: "3eZbrw1a" }]);
  assert.equal((await deliver("slack", body, { ...headers, "x-slack-signature": `v0=${"0".repeat(64)}` })).status, 401);
  assert.deepEqual(await fires("slack"), []);
});

test("PUT is taken as POST is", async () => {
  await register("put", "verify: none, respond: result", { input: '{ got: "{{ method }}" }' });
  assert.deepEqual((await deliver("put", "{}", {}, "PUT")).body["result"], { got: "PUT" });
});

test("a subscription with the source webhook starts its playbook with the message, by the header that it names", async () => {
  await register("unused", "verify: none");
  const content = `apiVersion: flow/v1
kind: Subscription
metadata: { name: payments, path: subscriptions/payments }
spec:
  source: webhook
  mode: push
  ingress: { gateway_path: /ingress/pay, verify: { type: hmac_sha256, header: X-Sign, secret: github_hook } }
  dispatch: { playbook: hooks/unused, payload_from: message.json.data }
  headers: { directives: [{ header: X-Key, controls: dispatch.idempotency_key }] }
`;
  const registered = await work.post("/api/catalog/register", { content });
  assert.equal(registered.status, 200, JSON.stringify(registered.body));
  const body = JSON.stringify({ data: { got: 7 } });
  const sign = createHmac("sha256", "s3cret").update(body).digest("hex");
  const send = (key: string) => deliver("ingress/pay", body, { "x-sign": sign, "x-key": key });
  const first = await send("a");
  assert.equal(first.status, 202, JSON.stringify(first.body));
  assert.equal((await send("a")).body["execution_id"], first.body["execution_id"]);
  assert.notEqual((await send("b")).body["execution_id"], first.body["execution_id"]);
  const ended = await work.get(`/api/executions/${first.body["execution_id"]}/result?wait_ms=5000`);
  assert.deepEqual(ended.body["result"], { got: 7 }, JSON.stringify(ended.body));
});

test("the example starts for a push to the main branch as GitHub sends it, and for nothing else", async () => {
  const file = join(import.meta.dirname, "../../../../playbooks/examples/github_push.yaml");
  const { status, body: registered } = await work.post("/api/catalog/register", {
    content: readFileSync(file, "utf8"),
  });
  assert.equal(status, 200, JSON.stringify(registered));
  const send = (event: string, ref: string, id: string) => {
    const about = { ref, after: "1f2e3d4c5b6a", repository: { full_name: "acme/shop" }, pusher: { name: "ann" } };
    const body = JSON.stringify({ ...about, head_commit: { message: "Release 1.4.0" } });
    return deliver("github/push", body, signed(body, "s3cret", { "x-github-event": event, "x-github-delivery": id }));
  };
  assert.equal((await send("ping", "", "p")).body["skipped"], true);
  assert.equal((await send("push", "refs/heads/other", "o")).body["skipped"], true);
  const started = await send("push", "refs/heads/main", "m");
  assert.equal(started.status, 202, JSON.stringify(started.body));
  const ended = await work.get(`/api/executions/${started.body["execution_id"]}/result?wait_ms=5000`);
  assert.deepEqual(ended.body["result"], { released: "1.4.0", title: "acme/shop 1f2e3d4 by ann" });
});
