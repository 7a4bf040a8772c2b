import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";

/* Approvals through the API, on PostgreSQL (control, section 2 and rules 27 to 31). */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);

const steps = (approval: string) => `  - step: release
    tool:
      kind: wait
      approval: { title: "Release {{ workload.version }}?", ${approval} }
      timeout: 3600
    next: { arcs: [{ step: end }] }
  - { step: end, tool: { kind: noop, result: { how: "{{ release.outcome }}", data: "{{ release.data }}", by: "{{ release.by }}" } } }
`;
const FORM = `form: { type: object, properties: { window: { enum: [now, tonight] } }, required: [window], additionalProperties: false }`;

before(async () => {
  await work.register("a/form", steps(`description: "**all** of it", ${FORM}, approvers: { roles: [heads] }`));
  await work.register("a/two", steps("required: 2"));
});

const opened = async (path: string) => {
  const id = await work.execute(path, { workload: { version: 7 } });
  const parked = "event_type=approval.opened&limit=1";
  let opened: Body[] = [];
  while (opened.length === 0)
    opened = (await work.get(`/api/executions/${id}/events?${parked}`)).body["events"] as Body[];
  const detail = (await work.get(`/api/executions/${id}`)).body;
  const [wait] = detail["waiting_for"] as Body[];
  return { id, wait, approvalId: String(wait?.["approval_id"]) };
};
const decide = (id: string, body: Body) => work.post(`/api/approvals/${id}/decide`, body);
const show = async (id: string) => (await work.get(`/api/approvals/${id}`)).body;

test("a step waits for an approval: the execution, the list and the approval itself say for what", async () => {
  const { id, wait, approvalId } = await opened("a/form");
  assert.deepEqual([wait?.["kind"], wait?.["step"], wait?.["name"]], ["approval", "release", "Release 7?"]);
  const shown = await show(approvalId);
  assert.equal(shown["execution_id"], id);
  assert.equal(shown["status"], "open");
  assert.equal(shown["description"], "**all** of it");
  assert.deepEqual(shown["approvers"], { roles: ["heads"], users: [], not_starter: false, who_may_execute: false });
  assert.equal(shown["may_decide"], true);
  assert.ok(Date.parse(String(shown["due"])) > Date.now() + 3_500_000);
  for (const query of ["?mine", "?mine=true", "?status=open", `?execution_id=${id}`, ""]) {
    const { approvals } = (await work.get(`/api/approvals${query}`)).body;
    assert.ok(
      (approvals as Body[]).some((one) => one["approval_id"] === approvalId),
      query,
    );
  }
  const { approvals: others } = (await work.get("/api/approvals?status=rejected")).body;
  assert.ok(!(others as Body[]).some((one) => one["approval_id"] === approvalId));
});

test("data are checked by the form, with the place of every problem; what fits is the step's", async () => {
  const { id, approvalId } = await opened("a/form");
  const wrong: [body: Body, errors: Body[]][] = [
    [{ decision: "approve" }, [{ path: "window", message: "is required" }]],
    [
      { decision: "approve", data: { window: "later" } },
      [{ path: "window", message: 'must be one of ["now","tonight"]' }],
    ],
    [
      { decision: "reject", data: { x: 1 } },
      [
        { path: "window", message: "is required" },
        { path: "x", message: "is not a known field" },
      ],
    ],
  ];
  for (const [body, errors] of wrong) {
    const answer = await decide(approvalId, body);
    assert.equal(answer.status, 422, JSON.stringify(answer.body));
    assert.deepEqual((answer.body["detail"] as Body)["errors"], errors);
  }
  const answer = await decide(approvalId, { decision: "approve", data: { window: "now" }, comment: "go" });
  assert.deepEqual(
    [answer.status, answer.body],
    [200, { approval_id: approvalId, execution_id: id, status: "approved" }],
  );
  const ended = await work.runToEnd(id);
  assert.deepEqual(ended["result"], { how: "approved", data: { window: "now" }, by: "operator" });
  const shown = await show(approvalId);
  assert.deepEqual([shown["status"], shown["may_decide"]], ["approved", false]);
  const [decision] = shown["decisions"] as Body[];
  assert.deepEqual(
    [decision?.["by"], decision?.["comment"], decision?.["data"]],
    ["operator", "go", { window: "now" }],
  );
  assert.equal((await decide(approvalId, { decision: "approve", data: { window: "now" } })).status, 409);
});

test("a rejection needs no data, and is a result", async () => {
  const { id, approvalId } = await opened("a/form");
  assert.equal((await decide(approvalId, { decision: "reject", comment: "no" })).body["status"], "rejected");
  assert.deepEqual(((await work.runToEnd(id))["result"] as Body)["how"], "rejected");
});

test("the same person counts once: an operator's token is one", async () => {
  const { approvalId } = await opened("a/two");
  assert.equal((await decide(approvalId, { decision: "approve" })).body["status"], "open");
  const again = await decide(approvalId, { decision: "reject" });
  assert.equal(again.status, 409);
  assert.match(JSON.stringify(again.body), /has decided already/);
  const { approvals } = (await work.get("/api/approvals?mine")).body;
  assert.ok(!(approvals as Body[]).some((one) => one["approval_id"] === approvalId));
});

test("what is no decision is refused; data have 64 KiB at most", async () => {
  const { approvalId } = await opened("a/two");
  for (const body of [
    {},
    { decision: "maybe" },
    { decision: "approve", x: 1 },
    { decision: "approve", comment: "x".repeat(2_001) },
    { decision: "approve", data: "x".repeat(65_535) },
  ]) {
    assert.equal((await decide(approvalId, body)).status, 422, JSON.stringify(body).slice(0, 60));
  }
  assert.equal((await decide("1", { decision: "approve" })).status, 404);
  assert.equal((await decide("x", { decision: "approve" })).status, 404);
  assert.equal((await work.get("/api/approvals/1")).status, 404);
  assert.equal((await work.get("/api/approvals?status=odd")).status, 422);
  const most = { decision: "approve", data: "x".repeat(65_534), comment: "x".repeat(2_000) };
  assert.equal((await decide(approvalId, most)).status, 200);
});

test("cancelling closes it; deleting the execution removes it", async () => {
  const { id, approvalId } = await opened("a/two");
  await decide(approvalId, { decision: "approve" });
  await work.post(`/api/executions/${id}/cancel`, {});
  const shown = await show(approvalId);
  assert.deepEqual([shown["status"], shown["closed_at"] !== undefined], ["cancelled", true]);
  assert.equal((await decide(approvalId, { decision: "approve" })).status, 409);
  assert.equal((await work.send("DELETE", `/api/executions/${id}`)).status, 200);
  assert.equal((await work.get(`/api/approvals/${approvalId}`)).status, 404);
  const [left] = await api.database
    .sql`select count(*)::int as n from flow.approval_decision where approval_id = ${approvalId}`;
  assert.equal(left?.["n"], 0);
});

test("pages of the list follow each other", async () => {
  const made = await Promise.all([opened("a/two"), opened("a/two"), opened("a/two")]);
  const seen: string[] = [];
  for (let cursor: unknown = ""; cursor !== null; ) {
    const page = (await work.get(`/api/approvals?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`)).body;
    seen.push(...(page["approvals"] as Body[]).map((one) => String(one["approval_id"])));
    cursor = page["next_cursor"];
  }
  assert.equal(new Set(seen).size, seen.length);
  assert.deepEqual(
    seen,
    [...seen].sort((left, right) => Number(right) - Number(left)),
  );
  for (const { approvalId } of made) assert.ok(seen.includes(approvalId));
});

test("looks and decisions stand in the audit log, and in the log of the execution", async () => {
  const { id, approvalId } = await opened("a/two");
  await show(approvalId);
  await decide(approvalId, { decision: "approve", data: { secret: "s3cret" } });
  const [row] = await api.database.sql<{ detail: Body }[]>`
    select detail from auth.audit_log where resource = ${`approval/${approvalId}`} and action = 'approval.decide'`;
  assert.deepEqual(row?.detail, { decision: "approve", status: "open" });
  const { events } = (await work.get(`/api/executions/${id}/events?event_type=approval.decided`)).body;
  const [event = {}] = events as Body[];
  assert.equal((event["meta"] as Body)["by"], "operator");
});
