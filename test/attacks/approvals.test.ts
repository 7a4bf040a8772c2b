import assert from "node:assert/strict";
import { before, test } from "node:test";
import { LINK_PER_MINUTE } from "../../src/routes/approvals/links.ts";
import { LINK_BODY_BYTES_MAX } from "../../src/schema/api/waits/approvals.ts";
import { type Body, openApi, TOKENS } from "../support/service/api.ts";
import { workWith } from "../support/service/api-work.ts";
import { answerOf, EVIL, PAGE, testGateway, withSession } from "../support/service/gateway-app.ts";
import { addUser, allow, type TestUser } from "../support/service/users.ts";

/* Who tries to decide over what others are asked (control, rules 28 and 30). */

const api = await openApi({ FLOW_PURE_STEPS: "server" }, { publicUrl: () => "https://flow.example.com" });
const work = workWith(api);

const steps = (approvers: string) => `  - step: release
    tool: { kind: wait, approval: { title: "Release?", description: "<img src=x onerror=alert(1)>", form: { type: object }${approvers} } }
    next: { arcs: [{ step: end }] }
  - { step: end, tool: { kind: noop, result: { by: "{{ release.by }}" } } }
`;

before(async () => {
  await work.register(
    "w/named",
    steps(", approvers: { roles: [viewer], users: [Boss@Example.com], not_starter: true }"),
  );
  await work.register("w/open", steps(", required: 2"));
});

const call = async (user: TestUser, method: string, path: string, body?: Body) => {
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const init = { method, headers: { ...headers, "content-type": "application/json" } };
  const response = await api.guarded.request(path, body === undefined ? init : { ...init, body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as Body };
};
const decide = (user: TestUser, id: string, decision = "approve") =>
  call(user, "POST", `/api/approvals/${id}/decide`, { decision, data: { from: user.email } });

/** The approval for which an execution of the path waits, which this user has started. */
async function openedBy(user: TestUser, path: string): Promise<string> {
  const { body } = await call(user, "POST", "/api/execute", { path });
  const events = `/api/executions/${body["execution_id"]}/events?event_type=approval.opened`;
  for (;;) {
    const [event] = (await work.get(events)).body["events"] as Body[];
    if (event !== undefined) return String((event["meta"] as Body)["approval_id"]);
  }
}

async function people() {
  const starter = await addUser(api.database, { roles: ["viewer"] });
  await allow(api.database, starter, [{ allow: "w/*", can: ["execute", "view"] }]);
  const viewer = await addUser(api.database, { roles: ["viewer"] });
  const stranger = await addUser(api.database);
  return { starter, viewer, stranger };
}

test("the person who has started an execution does not approve it, whatever their roles; another one does", async () => {
  const { starter, viewer } = await people();
  const id = await openedBy(starter, "w/named");
  const refused = await decide(starter, id);
  assert.equal(refused.status, 403);
  assert.match(JSON.stringify(refused.body), /they have started the execution/);
  const mine = await call(starter, "GET", "/api/approvals?mine");
  assert.ok(!(mine.body["approvals"] as Body[]).some((one) => one["approval_id"] === id));
  const theirs = await call(viewer, "GET", "/api/approvals?mine");
  assert.ok((theirs.body["approvals"] as Body[]).some((one) => one["approval_id"] === id));
  assert.deepEqual((await decide(viewer, id)).body["status"], "approved");
});

test("a person who is not among the approvers learns nothing and decides nothing; each try is in the audit log", async () => {
  const { starter, stranger } = await people();
  for (const path of ["w/named", "w/open"]) {
    const id = await openedBy(starter, path);
    assert.equal((await call(stranger, "GET", `/api/approvals/${id}`)).status, 403);
    assert.equal((await decide(stranger, id)).status, 403);
    const { body } = await call(stranger, "GET", "/api/approvals");
    assert.deepEqual(body["approvals"], []);
  }
  const rows = () =>
    api.database
      .sql`select from auth.audit_log where actor = ${stranger.email} and action = 'approval.decide' and result = 'deny'`;
  while ((await rows()).length < 2);
});

test("an approver without a right on the playbook sees what is asked, and not the data of others; an address counts in any case", async () => {
  const { starter, viewer } = await people();
  const boss = await addUser(api.database, { email: `boss@example.com` });
  const id = await openedBy(starter, "w/named");
  const { status, body } = await call(boss, "GET", `/api/approvals/${id}`);
  assert.deepEqual([status, body["title"], body["may_decide"]], [200, "Release?", true]);
  const execution = await call(boss, "GET", `/api/executions/${body["execution_id"]}`);
  assert.equal(execution.status, 403);
  assert.equal((await decide(viewer, id)).status, 200);
  const [decision] = (await call(boss, "GET", `/api/approvals/${id}`)).body["decisions"] as Body[];
  assert.deepEqual([decision?.["by"], decision?.["data"]], [viewer.email, undefined]);
  assert.equal((await decide(boss, id)).status, 409);
});

test("without approvers those decide who may execute the playbook, each once; a right that is gone does not count", async () => {
  const { starter } = await people();
  const second = await addUser(api.database);
  const role = await allow(api.database, second, [{ allow: "w/*", can: ["execute"] }]);
  const id = await openedBy(starter, "w/open");
  assert.equal((await decide(starter, id)).body["status"], "open");
  assert.equal((await decide(starter, id, "reject")).status, 409);
  await api.database.sql`update auth.roles set is_active = false where name = ${role}`;
  assert.equal((await decide(second, id)).status, 403);
  await api.database.sql`update auth.roles set is_active = true where name = ${role}`;
  assert.equal((await decide(second, id)).body["status"], "approved");
});

/* Links, through a gateway without a session, as the whole world reaches them. */

const { app: gateway, passed } = testGateway({
  async answer({ method, path, headers, body }) {
    const response = await api.guarded.request(path, { method, headers, ...(body !== "" && { body }) });
    return answerOf(response.status, Object.fromEntries(response.headers), await response.text());
  },
});

/** The address of the first link of a new approval, and its execution. */
async function linkOf(path = "w/link"): Promise<{ id: string; link: string }> {
  const id = await work.execute(path);
  const find = async () => {
    await api.service.tellPeople();
    const { body } = await work.get(`/api/executions?started_by=execution&started_by_id=${id}`);
    return (body["executions"] as Body[])[0];
  };
  let told = await find();
  while (told === undefined) told = await find();
  const { result } = await work.runToEnd(String(told["execution_id"]));
  return { id, link: String((result as Body)["url"]).replace("https://flow.example.com", "") };
}

before(async () => {
  await work.register("w/tell", `  - { step: start, tool: { kind: noop, result: { url: "{{ workload.url }}" } } }\n`);
  const notify = `notify: { playbook: w/tell, input: { url: "{{ approval.url }}" } }`;
  await work.register(
    "w/link",
    `  - { step: release, tool: { kind: wait, approval: { title: "<script>alert(1)</script>", description: ${HOSTILE}, ${notify}, required: 5 } } }\n`,
  );
});

/** Markdown that would do something if it became markup. */
const HOSTILE = JSON.stringify(
  `<script>alert(1)</script> ![x](https://evil.example/p.png) [a](javascript:alert(1)) [b](https://ok.example/"onclick="alert(1)) <https://x.example/"><img>

\`\`\`
</pre><script>alert(1)</script>
\`\`\`
- **</li><img src=x onerror=alert(1)>**`,
);

const post = async (link: string, body: string, headers: Record<string, string> = {}) =>
  await gateway.request(link, { method: "POST", body, headers: { "content-type": "application/json", ...headers } });
const APPROVE = JSON.stringify({ decision: "approve" });

test("a link that was forged, cut, changed or of another key opens nothing, and says nothing of what is there", async () => {
  const { link } = await linkOf();
  const [approval = "", number = "", key = "", mac = ""] = link.replace("/approve/", "").split(".");
  const before = passed.length;
  const forged = [
    `${approval}.${number}.${key}.${"A".repeat(43)}`,
    `${approval}.${Number(number) + 1}.${key}.${mac}`,
    `${Number(approval) + 1}.${number}.${key}.${mac}`,
    `${approval}.${number}.other.${mac}`,
    `${approval}.0${number}.${key}.${mac}`,
    `${approval}.${number}.${key}.${mac.slice(0, 42)}`,
    `${approval}.${number}.${key}.${mac}A`,
    `${approval}.${number}.${key}.${mac.slice(0, 42)}${mac.endsWith("B") ? "C" : "B"}`,
    approval,
    "x",
  ];
  const answers: string[] = [];
  for (const token of forged) {
    const looked = await gateway.request(`/approve/${token}`, { headers: { accept: "application/json" } });
    const decided = await post(`/approve/${token}`, APPROVE);
    const { error } = (await decided.json()) as Body;
    answers.push(`${looked.status} ${decided.status} ${error}`);
  }
  assert.deepEqual(
    new Set(answers),
    new Set(["404 404 There is no such link. Copy the whole address from the message"]),
  );
  assert.equal(passed.length - before, 2 * forged.length);
  assert.equal((await gateway.request(link)).status, 200, "and the genuine one does");
});

test("a link that is used many times at the same moment decides once", async () => {
  const { id, link } = await linkOf();
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(link, APPROVE)));
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, ...Array.from({ length: 19 }, () => 410)]);
  const [approval = {}] = (await work.get(`/api/approvals?execution_id=${id}`)).body["approvals"] as Body[];
  assert.equal((approval["decisions"] as Body[]).length, 1);
});

test("what looks at mail uses no link up, however often, and other methods do nothing", async () => {
  const { id, link } = await linkOf();
  for (let looks = 0; looks < 5; looks += 1) assert.equal((await gateway.request(link)).status, 200);
  assert.equal((await gateway.request(link, { method: "HEAD" })).status, 200);
  for (const method of ["PUT", "DELETE", "PATCH"]) assert.equal((await gateway.request(link, { method })).status, 405);
  const { body } = await work.get(`/api/approvals?execution_id=${id}`);
  assert.deepEqual((body["approvals"] as Body[])[0]?.["decisions"], []);
});

test("a huge body is refused, and one without a link before it is read; too many calls of a link are refused", async () => {
  const { link } = await linkOf();
  assert.equal((await post(link, "x".repeat(LINK_BODY_BYTES_MAX + 1))).status, 413);
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 65_536;
      if (sent > 64 * LINK_BODY_BYTES_MAX) controller.close();
      else controller.enqueue(new Uint8Array(65_536));
    },
  });
  const refused = await gateway.request(link, { method: "POST", body: endless, duplex: "half" } as RequestInit);
  assert.ok(refused.status === 413 || refused.status === 422, String(refused.status));
  assert.ok(sent < 16 * LINK_BODY_BYTES_MAX, `${sent} bytes were taken`);
  const statuses = new Set<number>();
  for (let calls = 0; calls < 2 * LINK_PER_MINUTE; calls += 1) statuses.add((await gateway.request(link)).status);
  assert.deepEqual(statuses, new Set([200, 429]));
  const other = await linkOf();
  assert.equal((await gateway.request(other.link)).status, 200, "and another link is not slowed down by that");
});

test("the page runs nothing of an author's, and no other page can show it or learn its address", async () => {
  const { link } = await linkOf();
  const answer = await gateway.request(link);
  const page = await answer.text();
  assert.ok(!/<script|<img|<\/pre><s|href="javascript|"onclick=/i.test(page), page);
  for (const tag of page.match(/<a [^>]*>/g) ?? [])
    assert.match(tag, /^<a href="https:\/\/[^"]+" target="_blank" rel="noopener noreferrer nofollow">$/);
  assert.ok(page.includes("<li><strong>&#60;/li&#62;"), page);
  const policy = answer.headers.get("content-security-policy") ?? "";
  for (const part of ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"])
    assert.ok(policy.includes(part), policy);
  assert.deepEqual(
    ["x-frame-options", "referrer-policy", "x-content-type-options"].map((name) => answer.headers.get(name)),
    ["DENY", "same-origin", "nosniff"],
  );
});

test("nothing but the link goes on to the server: no header of a gateway's, and a session only as the person's own", async () => {
  const { link } = await linkOf();
  const headers = { "x-flow-session": "0".repeat(64), "x-flow-claim": "x", authorization: `Bearer ${TOKENS.operator}` };
  await gateway.request(link, { headers });
  const { headers: gone } = passed.at(-1) ?? { headers: {} };
  assert.deepEqual(
    Object.keys(gone).filter((name) => name.startsWith("x-flow-") || name === "authorization"),
    [],
  );
  await gateway.request(link, withSession({ origin: EVIL }));
  await gateway.request(link, withSession({ origin: PAGE }));
  for (const path of ["/approve/..%2fapi%2fexecutions", "/approve/a/b", "/approve/"]) {
    const before = passed.length;
    assert.equal((await gateway.request(path)).status, 404, path);
    assert.equal(passed.length, before, path);
  }
});
