import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { messageLink } from "../../../src/schema/words/approval.ts";
import { type Body, buildApi, openApi, TOKENS } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* Messages about approvals and their links (control, rules 29 and 30), with a second server of the same database. */

const PUBLIC = "https://flow.example.com/base";
const settings = { FLOW_PURE_STEPS: "server" };
const parts = { publicUrl: () => PUBLIC };
const api = await openApi(settings, parts);
const elsewhere = await buildApi(api.database, settings, parts);
after(() => elsewhere.service.orchestrator.close());
const work = workWith(api);
const { sql } = api.database;

const TELL = `  - { step: start, tool: { kind: noop, result: { text: "{{ workload.text }}" } } }\n`;
const asking = (approval: string, more = "timeout: 3600") => `  - step: release
    tool:
      kind: wait
      approval: { title: "Release <b>{{ workload.version }}</b>?", ${approval} }
      ${more}
    next: { arcs: [{ step: end }] }
  - { step: end, tool: { kind: noop, result: { how: "{{ release.outcome }}", data: "{{ release.data }}", by: "{{ release.by }}" } } }
`;
const NOTIFY = `notify: { playbook: l/tell, input: { text: "{{ approval.reason }} {{ approval.title }} {{ approval.url }} {{ approval.id }}" } }`;
const FORM = `form: { type: object, properties: { window: { type: string, enum: [now, tonight], title: When }, count: { type: integer }, sure: { type: boolean }, note: { type: string, maxLength: 500 }, more: { type: array } }, required: [window], additionalProperties: false }`;

before(async () => {
  await work.register("l/tell", TELL);
  await work.register("l/plain", asking(NOTIFY));
  await work.register("l/form", asking(`${NOTIFY}, description: "a < b & **c**", ${FORM}`));
  await work.register(
    "l/each",
    asking(
      `notify: { playbook: l/tell, input: { text: "{{ approval.to }} {{ approval.url }}" }, to: "{{ workload.to }}" }, required: 2`,
    ),
  );
  await work.register("l/two", asking(`${NOTIFY}, required: 2`));
  await work.register("l/login", asking(`${NOTIFY}, link_login: true, approvers: { users: [Boss@Example.com] }`));
  await work.register("l/long", asking(NOTIFY, "on_timeout: continue"));
});

/** Starts it, and gives the execution, its approval, and the text of its first message. */
async function opened(path: string) {
  const id = await work.execute(path, { workload: { version: 7 } });
  let found: Body | undefined;
  while (found === undefined)
    found = ((await work.get(`/api/approvals?execution_id=${id}`)).body["approvals"] as Body[])[0];
  await tellAll();
  const approvalId = String(found["approval_id"]);
  const [message] = await messages(approvalId);
  const telling = message?.["execution_id"];
  return { id, approvalId, text: telling === undefined ? "" : await textOf(String(telling)) };
}
async function tellAll() {
  while ((await api.service.tellPeople()) > 0);
}
const messages = async (approvalId: string) =>
  ((await work.get(`/api/approvals/${approvalId}`)).body["messages"] ?? []) as Body[];
const textOf = async (id: string) => String(((await work.runToEnd(id))["result"] as Body | null)?.["text"] ?? "");
const pathOf = (text: string) => /\/approve\/\S+/.exec(text)?.[0] ?? "";

async function look(path: string, headers: Record<string, string> = {}) {
  const response = await api.guarded.request(path, { headers });
  return { status: response.status, headers: response.headers, text: await response.text() };
}
async function decide(path: string, body: Body, headers: Record<string, string> = {}) {
  const response = await api.guarded.request(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
  return { status: response.status, body: (await response.json()) as Body };
}
async function submit(path: string, fields: Record<string, string>) {
  const response = await api.guarded.request(path, {
    method: "POST",
    body: new URLSearchParams(fields).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
  return { status: response.status, text: await response.text() };
}

test("a message starts its playbook with the link, once, and says what started it", async () => {
  const { id, approvalId, text } = await opened("l/plain");
  assert.match(text, new RegExp(`^opened Release <b>7</b>\\? ${PUBLIC}/approve/[\\w.-]+ ${approvalId}$`));
  const [message, ...others] = await messages(approvalId);
  assert.deepEqual(
    [others, message?.["number"], message?.["playbook"], message?.["error"]],
    [[], 1, "l/tell", undefined],
  );
  const told = (await work.get(`/api/executions/${message?.["execution_id"]}`)).body;
  assert.deepEqual(told["started_by"], { kind: "execution", id, name: "l/plain" });
  assert.equal(told["parent_execution_id"] ?? null, null);
  const lineage = (await work.get(`/api/executions/${id}/lineage`)).body["descendants"] as Body[];
  assert.deepEqual(
    lineage.map(({ path, by }) => [path, by]),
    [["l/tell", "hook"]],
  );
  // The log has no link that could be used.
  const log = await work.get(`/api/executions/${id}/events?event_type=approval.notified`);
  assert.ok(JSON.stringify(log.body).includes(messageLink(approvalId, 1)));
  assert.ok(!JSON.stringify(log.body).includes("/approve/"));
});

test("two servers send at once, and one dies before it has noted that: each message starts one execution", async () => {
  const ids = await Promise.all(Array.from({ length: 6 }, () => work.execute("l/plain", { workload: { version: 1 } })));
  const waiting = async () => {
    const [row] = await sql<{ count: number }[]>`
      select count(*)::int as count from flow.approval a join flow.approval_message m using (approval_id)
      where a.execution_id = any(${ids}::bigint[])`;
    return row?.count;
  };
  while ((await waiting()) !== ids.length);
  await Promise.all([api.service.tellPeople(), elsewhere.service.tellPeople(), api.service.tellPeople()]);
  await tellAll();
  // It has started what tells people, and was killed before it wrote that.
  await sql`update flow.approval_message set sent_at = null, sent_execution_id = null, taken_until = now() - interval '1 s'`;
  await Promise.all([tellAll(), elsewhere.service.tellPeople()]);
  const rows = await sql<{ of: string; count: number }[]>`
    select started_id as of, count(*)::int as count from flow.execution
    where started_kind = 'execution' and started_id = any(${ids}::bigint[]) group by started_id`;
  assert.deepEqual(new Set(rows.map(({ of, count }) => `${of} ${count}`)), new Set(ids.map((id) => `${id} 1`)));
});

test("a reminder and an escalation are messages of their own, each with a link of its own", async () => {
  await work.register(
    "l/remind",
    asking(`${NOTIFY}, remind_every: 1s, escalate: { after: 1500ms, to: { users: [top@example.com] } }`),
  );
  const { approvalId } = await opened("l/remind");
  let list: Body[] = [];
  while (list.length < 3) {
    await api.service.orchestrator.recovery.wake();
    await tellAll();
    list = await messages(approvalId);
  }
  const texts = await Promise.all(list.map(({ execution_id: one }) => textOf(String(one))));
  assert.equal(new Set(texts.map(pathOf)).size, texts.length);
  const reasons = new Set(texts.map((text) => text.split(" ")[0]));
  for (const reason of ["opened", "reminder", "escalation"]) assert.ok(reasons.has(reason), `${[...reasons]}`);
});

test("a message that cannot be sent says why, and the approval goes on", async () => {
  const cases: [name: string, notify: string, error: RegExp][] = [
    ["gone", "{ playbook: l/nowhere }", /not found/],
    ["self", "{ playbook: l/self }", /is among the playbooks that led to this message/],
  ];
  for (const [name, notify, error] of cases) {
    await work.register(`l/${name}`, asking(`notify: ${notify}`));
    const { id, approvalId } = await opened(`l/${name}`);
    const [message] = await messages(approvalId);
    assert.match(String(message?.["error"]), error, name);
    assert.equal((await work.post(`/api/approvals/${approvalId}/decide`, { decision: "approve" })).status, 200);
    assert.equal((await work.runToEnd(id))["status"], "COMPLETED");
  }
  // A template that fails is in the log, and no message.
  await work.register("l/broken", asking(`notify: { playbook: l/tell, input: { text: "{{ approval.title + 1 }}" } }`));
  const { approvalId } = await opened("l/broken");
  assert.deepEqual(await messages(approvalId), []);
  // One that fails while it runs.
  await work.register("l/failing", `  - { step: start, tool: { kind: noop, result: "{{ 1 / 0 }}" } }\n`);
  await work.register("l/fails", asking("notify: { playbook: l/failing }"));
  const failing = await opened("l/fails");
  const [started] = await messages(failing.approvalId);
  assert.equal((await work.get(`/api/executions/${started?.["execution_id"]}`)).body["status"], "FAILED");
  assert.equal((await work.get(`/api/approvals/${failing.approvalId}`)).body["status"], "open");
});

test("the user in whose name it runs must be allowed to execute what tells people", async () => {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "l/plain", can: ["execute", "view"] }]);
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const response = await api.guarded.request("/api/execute", {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ path: "l/plain", workload: { version: 1 } }),
  });
  const { execution_id: id } = (await response.json()) as Body;
  let found: Body | undefined;
  while (found === undefined)
    found = ((await work.get(`/api/approvals?execution_id=${id}`)).body["approvals"] as Body[])[0];
  await tellAll();
  const [message] = await messages(String(found["approval_id"]));
  assert.match(String(message?.["error"]), /may not execute 'l\/tell'/);
});

test("without a public address there is no link, and the rest of the message is sent", async () => {
  const silent = await openApi(settings);
  const other = workWith(silent);
  await other.register("l/tell", TELL);
  await other.register("l/plain", asking(NOTIFY));
  await other.execute("l/plain", { workload: { version: 7 } });
  let told: Body[] = [];
  while (told.length === 0) {
    await silent.service.tellPeople();
    told = (await other.get("/api/executions?path=l/tell")).body["executions"] as Body[];
  }
  const ended = await other.runToEnd(String(told[0]?.["execution_id"]));
  assert.match(String((ended["result"] as Body)["text"]), /^opened Release <b>7<\/b>\? {2}\d+$/);
});

test("a look shows what is asked as text, in a page without scripts, and uses nothing up", async () => {
  const { approvalId, text } = await opened("l/form");
  const path = pathOf(text);
  for (let looks = 0; looks < 3; looks += 1) {
    const { status, text: page, headers } = await look(path);
    assert.equal(status, 200);
    assert.match(page, /<h1>Release &#60;b&#62;7&#60;\/b&#62;\?<\/h1>/);
    assert.match(page, /<p>a &#60; b &#38; <strong>c<\/strong><\/p>/);
    assert.match(page, /<select name="data.window"><option value=""><\/option><option>now<\/option>/);
    assert.ok(!/<script|<img|https?:/i.test(page), page);
    assert.match(headers.get("content-type") ?? "", /^text\/html/);
    assert.match(
      headers.get("content-security-policy") ?? "",
      /^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self'/,
    );
    assert.deepEqual([headers.get("cache-control"), headers.get("referrer-policy")], ["no-store", "same-origin"]);
  }
  const asJson = await look(path, { accept: "application/json" });
  const answer = JSON.parse(asJson.text) as Body;
  assert.deepEqual([answer["title"], answer["status"], answer["link"]], ["Release <b>7</b>?", "open", "open"]);
  assert.equal((await work.get(`/api/approvals/${approvalId}`)).body["status"], "open");
});

test("a form decides: fields become the data by their types, and what does not fit is said with what was given", async () => {
  const { id, approvalId, text } = await opened("l/form");
  const path = pathOf(text);
  const wrong = await submit(path, { decision: "approve", "data.window": "", "data.count": "many", comment: "a\r\nb" });
  assert.equal(wrong.status, 422);
  assert.match(wrong.text, /role="alert">.*window: is required.*count/);
  assert.match(wrong.text, /value="many"/);
  assert.match(wrong.text, />a\r?\nb<\/textarea>/);
  assert.equal((await submit(path, { "data.window": "now" })).status, 422);
  const fields = {
    "data.window": "tonight",
    "data.count": "3",
    "data.sure": "yes",
    "data.note": "x\r\ny",
    "data.more": "[1]",
  };
  const done = await submit(path, { decision: "approve", ...fields, comment: "" });
  assert.deepEqual([done.status, /Your approval is recorded/.test(done.text)], [200, true]);
  const ended = await work.runToEnd(id);
  const data = { window: "tonight", count: 3, sure: true, note: "x\ny", more: [1] };
  assert.deepEqual(ended["result"], { how: "approved", data, by: "link" });
  const used = await look(path);
  assert.deepEqual([used.status, /This link was used/.test(used.text), /<form/.test(used.text)], [410, true, false]);
  assert.equal((await submit(path, { decision: "reject" })).status, 410);
  const program = await look(path, { accept: "application/json" });
  assert.deepEqual([program.status, (JSON.parse(program.text) as Body)["code"]], [410, "GONE"]);
  assert.equal((await work.get(`/api/approvals/${approvalId}`)).body["status"], "approved");
});

test("JSON decides; a rejection needs no data; a link and its person count once", async () => {
  const first = await opened("l/form");
  assert.deepEqual(await decide(pathOf(first.text), { decision: "reject", comment: "no" }), {
    status: 200,
    body: { status: "rejected" },
  });
  assert.equal(((await work.runToEnd(first.id))["result"] as Body)["how"], "rejected");
  const two = await opened("l/two");
  const path = pathOf(two.text);
  assert.deepEqual((await decide(path, { decision: "approve" })).body, { status: "open" });
  assert.equal((await decide(path, { decision: "approve" })).status, 410);
  assert.equal(
    (await work.post(`/api/approvals/${two.approvalId}/decide`, { decision: "approve" })).body["status"],
    "approved",
  );
});

test("a link ends with the wait, with a closed approval, and after seven days", async () => {
  const closed = await opened("l/plain");
  await work.post(`/api/executions/${closed.id}/cancel`, {});
  assert.match((await look(pathOf(closed.text))).text, /Nothing is left to be decided: it is cancelled/);
  assert.equal((await decide(pathOf(closed.text), { decision: "approve" })).status, 410);

  const due = await opened("l/plain");
  await sql`update flow.approval set due_at = now() where approval_id = ${due.approvalId}`;
  assert.match((await look(pathOf(due.text))).text, /This link has expired/);
  assert.equal((await decide(pathOf(due.text), { decision: "approve" })).status, 410);

  const week = await opened("l/long");
  const age = (interval: string) =>
    sql`update flow.approval_message set created_at = now() - ${interval}::interval where approval_id = ${week.approvalId}`;
  await age("7 days");
  assert.match((await look(pathOf(week.text))).text, /This link has expired/);
  assert.equal((await decide(pathOf(week.text), { decision: "approve" })).status, 410);
  await age("6 days 23 hours");
  assert.equal((await decide(pathOf(week.text), { decision: "approve" })).status, 200);
});

test("with link_login a person decides who is logged in and an approver, and the decision is theirs", async () => {
  const { id, text } = await opened("l/login");
  const path = pathOf(text);
  const boss = await addUser(api.database, { email: "boss@example.com" });
  const other = await addUser(api.database);
  const as = (token: string) => ({ authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": token });
  const unknown = await look(path);
  assert.deepEqual([unknown.status, /Release/.test(unknown.text)], [401, false]);
  assert.equal((await decide(path, { decision: "approve" })).status, 401);
  assert.equal((await look(path, as("0".repeat(64)))).status, 401);
  assert.equal((await look(path, as(other.tokenSha256))).status, 403);
  assert.equal((await decide(path, { decision: "approve" }, as(other.tokenSha256))).status, 403);
  assert.equal((await look(path, as(boss.tokenSha256))).status, 200);
  assert.equal((await decide(path, { decision: "approve" }, as(boss.tokenSha256))).status, 200);
  assert.equal(((await work.runToEnd(id))["result"] as Body)["by"], "boss@example.com");
});

test("the audit log has each look, each decision and each refusal, and no link", async () => {
  const { approvalId, text } = await opened("l/plain");
  const path = pathOf(text);
  await look(path);
  await decide(path, { decision: "approve" });
  await decide(path, { decision: "approve" });
  let rows: { action: string; result: string; actor_kind: string; rule: string }[] = [];
  while (rows.length < 3)
    rows = await sql`select action, result, actor_kind, rule from auth.audit_log
      where resource = ${`approval/${approvalId}`} and rule = 'link' order by audit_id`;
  assert.deepEqual(rows.map(({ action, result, actor_kind: kind }) => `${action} ${result} ${kind}`).sort(), [
    "approval.decide allow anonymous",
    "approval.decide deny anonymous",
    "approval.view allow anonymous",
  ]);
  const [leaked] = await sql`select from auth.audit_log where audit_log::text like ${`%${path.slice(9)}%`} limit 1`;
  assert.equal(leaked, undefined);
});

/** Starts it for these addressees, and gives its approval and the link of each. */
async function addressed(to: unknown) {
  const id = await work.execute("l/each", { workload: { version: 7, to } });
  let found: Body | undefined;
  while (found === undefined)
    found = ((await work.get(`/api/approvals?execution_id=${id}`)).body["approvals"] as Body[])[0];
  await tellAll();
  const approvalId = String(found["approval_id"]);
  const sent = await messages(approvalId);
  const texts = await Promise.all(sent.map(({ execution_id: one }) => textOf(String(one))));
  const links = new Map(texts.map((text) => [text.split(" ")[0] ?? "", pathOf(text)]));
  return { id, approvalId, sent, link: (name: string) => links.get(name) ?? "" };
}

test("each addressee has a link of their own, counts as one person by it, and is named in the result", async () => {
  const { id, approvalId, sent, link } = await addressed(["Ann@example.com", "bob@example.com", "ann@example.com"]);
  assert.deepEqual(sent.map(({ to }) => to).sort(), ["ann@example.com", "bob@example.com"]);
  assert.deepEqual((await decide(link("ann@example.com"), { decision: "approve" })).body, { status: "open" });
  assert.equal((await decide(link("ann@example.com"), { decision: "approve" })).status, 410);
  assert.deepEqual((await decide(link("bob@example.com"), { decision: "approve" })).body, { status: "approved" });
  assert.equal(((await work.runToEnd(id))["result"] as Body)["by"], "link:bob@example.com");
  const decisions = (await work.get(`/api/approvals/${approvalId}`)).body["decisions"] as Body[];
  assert.deepEqual(
    decisions.map(({ by }) => by),
    ["link:ann@example.com", "link:bob@example.com"],
  );
});

test("an addressee does not count twice: by a later link, or logged in; and their inbox has it no more", async () => {
  const ann = await addUser(api.database, { email: "Ann@example.com" });
  await allow(api.database, ann, [{ allow: "l/each", can: ["execute", "view"] }]);
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": ann.tokenSha256 };
  const mine = async () => {
    const response = await api.guarded.request("/api/approvals?mine", { headers });
    return (((await response.json()) as Body)["approvals"] as Body[]).map((one) => one["approval_id"]);
  };
  const { approvalId, link } = await addressed(["ann@example.com", "bob@example.com"]);
  assert.ok((await mine()).includes(approvalId));
  assert.equal((await decide(link("ann@example.com"), { decision: "approve" })).status, 200);
  assert.ok(!(await mine()).includes(approvalId));
  const again = await decide(`/api/approvals/${approvalId}/decide`, { decision: "approve" }, headers);
  assert.equal(again.status, 409, JSON.stringify(again.body));

  const other = await addressed(["ann@example.com", "bob@example.com"]);
  assert.equal(
    (await decide(`/api/approvals/${other.approvalId}/decide`, { decision: "approve" }, headers)).status,
    200,
  );
  const late = await decide(other.link("ann@example.com"), { decision: "approve" });
  assert.equal(late.status, 409, JSON.stringify(late.body));
  assert.equal((await work.get(`/api/approvals/${other.approvalId}`)).body["status"], "open");
});

test("addressees that are none send nothing and say why in the log; twenty are told, one more is not", async () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => `p${index}@example.com`);
  for (const wrong of [[], "nobody", ["a@example.com", ""], [7], many(21)]) {
    const { id, sent } = await addressed(wrong);
    assert.deepEqual(sent, []);
    const { body } = await work.get(`/api/executions/${id}/events?event_type=approval.notified`);
    assert.match(JSON.stringify(body), /`to` must be 1 to 20 e-mail addresses/);
  }
  assert.equal((await addressed(many(20))).sent.length, 20);
  assert.equal((await addressed("one@example.com")).sent.length, 1);
});

test("who has decided is not reminded, the others are", async () => {
  const notify = `{ playbook: l/tell, input: { text: "{{ approval.to }} {{ approval.url }}" }, to: [ann@example.com, bob@example.com] }`;
  await work.register("l/remind", asking(`required: 2, remind_every: 1, notify: ${notify}`));
  const { approvalId } = await opened("l/remind");
  const first = (await messages(approvalId)).find(({ to }) => to === "ann@example.com");
  const link = pathOf(await textOf(String(first?.["execution_id"])));
  assert.equal((await decide(link, { decision: "approve" })).status, 200);
  const before = (await messages(approvalId)).length;
  let later: Body[] = [];
  while (later.length < 2) {
    await api.service.orchestrator.recovery.wake();
    later = (await messages(approvalId)).slice(0, -before);
  }
  assert.deepEqual(new Set(later.map(({ to }) => to)), new Set(["bob@example.com"]));
});
