import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { type Body, openApi, TOKENS } from "../support/service/api.ts";
import { workWith } from "../support/service/api-work.ts";
import { answerOf, testGateway } from "../support/service/gateway-app.ts";
import { addUser, allow, type TestUser } from "../support/service/users.ts";

/*
 * Deliveries of webhooks by those who should not send any: through a gateway, without a session, as the whole world reaches it. The gateway
 * passes them to the server's API with tokens.
 */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
const { app: gateway, passed } = testGateway({
  async answer({ method, path, headers, body }) {
    const response = await api.guarded.request(path, { method, headers, ...(body !== "" && { body }) });
    return answerOf(response.status, Object.fromEntries(response.headers), await response.text());
  },
});

const meta = { playbooks: ["hooks/**"] };
await work.post("/api/credentials", { name: "stripe", type: "custom", data: { secret: "whsec" }, meta });
await work.post("/api/credentials", { name: "github", type: "custom", data: { secret: "ghsec" }, meta });

async function register(hook: string, preset: string): Promise<void> {
  const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: h, path: hooks/${hook} }
workflow: [{ step: start, tool: { kind: noop } }]
triggers: [{ name: t, webhook: { path: ${hook}, verify: { preset: ${preset}, secret: ${preset} } } }]
`;
  assert.equal((await work.post("/api/catalog/register", { content })).status, 200);
}

async function deliver(
  path: string,
  body: string,
  headers: Record<string, string>,
): Promise<{ status: number; body: Body }> {
  const response = await gateway.request(path, { method: "POST", body, headers });
  return { status: response.status, body: (await response.json()) as Body };
}

const stripe = (body: string, at: number, secret = "whsec") => ({
  "stripe-signature": `t=${at},v1=${createHmac("sha256", secret).update(`${at}.${body}`).digest("hex")}`,
});
const github = (body: string) => ({
  "x-hub-signature-256": `sha256=${createHmac("sha256", "ghsec").update(body).digest("hex")}`,
});
const now = () => Math.floor(Date.now() / 1_000);

async function executions(path: string): Promise<number> {
  const { body } = await work.get(`/api/executions?path=${path}`);
  return (body["executions"] as Body[]).length;
}

await register("pay", "stripe");
await register("push", "github");

test("a forged signature starts nothing, however it is made", async () => {
  const body = '{"id":"evt_forged"}';
  const genuine = stripe(body, now())["stripe-signature"];
  const forged: Record<string, string>[] = [
    {},
    stripe(body, now(), "guessed"),
    stripe(body, now(), ""),
    { "stripe-signature": genuine.replace(/v1=.*/, `v1=${"0".repeat(64)}`) },
    { "stripe-signature": genuine.replace("v1=", "v0=") },
    { "stripe-signature": genuine.replace(/v1=/, "v1=&v1=") },
    { "stripe-signature": `${genuine},t=${now() + 1}` },
    { "stripe-signature": stripe(`${body} `, now())["stripe-signature"] },
    { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": "0".repeat(64) },
  ];
  for (const headers of forged) {
    const answer = await deliver("/hooks/pay", body, headers);
    assert.deepEqual(
      [answer.status, answer.body["error"]],
      [401, "The delivery is not accepted"],
      JSON.stringify(headers),
    );
  }
  assert.equal(await executions("hooks/pay"), 0);
  assert.equal((await deliver("/hooks/pay", body, stripe(body, now()))).status, 202, "and the genuine one does");
});

test("a delivery that was recorded starts nothing a second time, and is refused once its window is over", async () => {
  const body = '{"id":"evt_recorded"}';
  const recorded = stripe(body, now());
  const first = await deliver("/hooks/pay", body, recorded);
  const before = await executions("hooks/pay");
  for (let index = 0; index < 5; index += 1) {
    const again = await deliver("/hooks/pay", body, recorded);
    assert.equal(again.body["execution_id"], first.body["execution_id"]);
  }
  assert.equal((await deliver("/hooks/pay", body, stripe(body, now() - 301))).status, 401, "from before the window");
  assert.equal((await deliver("/hooks/pay", body, stripe(body, now() + 310))).status, 401, "from after it");
  assert.equal(await executions("hooks/pay"), before);
});

test("many copies of one delivery at the same moment start one execution", async () => {
  const body = '{"id":"evt_flood"}';
  const before = await executions("hooks/pay");
  const headers = stripe(body, now());
  const answers = await Promise.all(Array.from({ length: 30 }, () => deliver("/hooks/pay", body, headers)));
  // One that comes while the first is being started gets no execution yet.
  const ids = new Set(answers.flatMap(({ body: { execution_id: id } }) => (id === undefined ? [] : [id])));
  assert.equal(ids.size, 1, JSON.stringify(answers.map(({ status }) => status)));
  assert.equal((await executions("hooks/pay")) - before, 1);
});

test("a huge body is refused before it is read, announced or not, with or without a signature", async () => {
  const huge = "x".repeat(1_048_577);
  for (const headers of [{}, github(huge), { "content-length": String(2 ** 40) }]) {
    assert.equal((await deliver("/hooks/push", huge, headers)).status, 413, Object.keys(headers).join());
  }
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 65_536;
      controller.enqueue(new Uint8Array(65_536));
    },
  });
  const init = { method: "POST", body: endless, duplex: "half" } as RequestInit;
  assert.equal((await gateway.request("/hooks/push", init)).status, 413);
  assert.ok(sent < 4 * 1_048_576, `${sent} bytes were read of a body without end`);
});

test("who guesses paths learns no more than that they are unknown, and asks the database once a second for each", async () => {
  const answers = await Promise.all(
    ["push2", "Push", "push/", "pay%00", "push%2F..%2Fpay", "*", "'; drop table flow.trigger --", ".."].map(
      async (path) => await gateway.request(`/hooks/${path}`, { method: "POST", body: "{}" }),
    ),
  );
  for (const answer of answers) {
    const text = await answer.text();
    assert.equal(answer.status, 404, text);
    assert.doesNotMatch(text, /secret|stripe|github/);
  }
});

test("through /hooks nothing else of the server is reached, and nothing of the sender's is believed", async () => {
  for (const path of [
    "/hooks/../api/executions",
    "/hooks/%2e%2e/api/executions",
    "/hooks/..;/api/executions",
    "/hooks",
    "/hooks/",
  ]) {
    const response = await gateway.request(path, { method: "POST", body: "{}" });
    assert.ok([401, 404].includes(response.status), `${path}: ${response.status}`);
    await response.text();
  }
  assert.ok(passed.every(({ path }) => path.startsWith("/hooks/")));
  const body = '{"ref":"main"}';
  const headers = {
    ...github(body),
    cookie: "session_token=x",
    "x-flow-session": "0".repeat(64),
    "x-forwarded-for": "1.1.1.1",
  };
  passed.length = 0;
  assert.equal((await deliver("/hooks/push", body, headers)).status, 202);
  const names = Object.keys(passed[0]?.headers ?? {});
  assert.deepEqual(
    names.filter((name) => /cookie|x-flow|x-forwarded/.test(name)),
    [],
  );
  assert.equal(
    JSON.stringify(passed).includes("operator-token-canary"),
    false,
    "the operator's token goes with no delivery",
  );
});

test("GET does nothing: a link or a picture of a page is no delivery", async () => {
  const response = await gateway.request("/hooks/push");
  assert.ok([404, 405].includes(response.status), String(response.status));
});

test("what was refused is one row of the audit log for an address and a minute, with the reason, and no secret", async () => {
  for (let index = 0; index < 50; index += 1) await deliver("/hooks/push", "{}", {});
  await api.service.audit.close();
  const rows = await api.database.sql<{ rule: string; detail: { count: number }; resource: string }[]>`
    select rule, detail, resource from auth.audit_log where action = 'webhook.deliver'`;
  assert.equal(rows.length, 1);
  assert.ok((rows[0]?.detail.count ?? 0) >= 50);
  assert.equal(api.log().includes("ghsec") || api.log().includes("whsec"), false);
});

test("a flood of refused deliveries of one path from anywhere writes rows that do not grow with it, and an unknown path writes none", async () => {
  const count = async () => {
    await api.service.deliveries.close();
    const [row] = await api.database.sql<[{ rows: number; deliveries: number }]>`
      select count(*)::int as rows, coalesce(sum(count), 0)::int as deliveries from flow.trigger_delivery`;
    return row;
  };
  const before = await count();
  for (let index = 0; index < 30; index += 1) await deliver(`/hooks/guess/${index}`, "{}", {});
  assert.deepEqual(await count(), before);
  for (let index = 0; index < 400; index += 1)
    await deliver("/hooks/push", `{"canary-of-body":${index}}`, { "x-canary": "c" });
  const flooded = await count();
  // In a minute 20 rows and one for the rest, of each of two verdicts; the flood may have run into a second minute.
  assert.ok(flooded.rows - before.rows <= 84, `${flooded.rows - before.rows} rows`);
  assert.equal(flooded.deliveries - before.deliveries, 400);
  const [leak] = await api.database
    .sql`select from flow.trigger_delivery as d where d::text ~ 'canary|ghsec|whsec' limit 1`;
  assert.equal(leak, undefined);
});

test("who may not view the playbook learns nothing of its deliveries, and who may learns why they were refused", async () => {
  await deliver("/hooks/push", "{}", {});
  await api.service.deliveries.close();
  const [trigger] = (await work.get("/api/triggers?path=hooks/push")).body["triggers"] as Body[];
  const path = `/api/triggers/${trigger?.["trigger_id"]}/deliveries`;
  const reader = await addUser(api.database);
  await allow(api.database, reader, [{ allow: "hooks/push", can: ["view"] }]);
  const stranger = await addUser(api.database);
  const as = (user: TestUser) => ({ authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 });
  const refused = await api.guarded.request(path, { headers: as(stranger) });
  assert.equal(refused.status, 403);
  assert.doesNotMatch(await refused.text(), /not_verified|x-hub/);
  assert.equal((await api.guarded.request(path)).status, 401);
  const shown = await api.guarded.request(`${path}?refused=true&limit=1`, { headers: as(reader) });
  const [delivery] = ((await shown.json()) as Body)["deliveries"] as Body[];
  assert.ok(["not_verified", "rate_limited"].includes(String(delivery?.["verdict"])), JSON.stringify(delivery));
});
