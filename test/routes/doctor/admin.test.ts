import assert from "node:assert/strict";
import { test } from "node:test";
import type { Diagnosis } from "../../../src/schema/api/doctor.ts";
import { openApi, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);
await work.register("one", ONE_STEP);
const executionId = await work.execute("one");

test("a sweep reports what was published again, changes no status, and is recorded in the audit log", async () => {
  const swept = await work.post("/api/admin/command_reaper/sweep");
  assert.equal(swept.status, 200);
  assert.deepEqual(swept.body, {
    status: "ok",
    republished: { pending: 1, worker: 0, timeout: 0 },
    total: 1,
    more: false,
  });
  const [command] = await api.database.sql`
    select status, attempt from flow.command where execution_id = ${executionId}`;
  assert.deepEqual({ ...command }, { status: "PENDING", attempt: 0 });
  const [row] = await api.database.sql`
    select actor_kind, result, detail from auth.audit_log where action = 'command_reaper.sweep'`;
  assert.deepEqual(
    { ...row },
    {
      actor_kind: "operator",
      result: "allow",
      detail: { pending: 1, worker: 0, timeout: 0 },
    },
  );
});

test("a sweep is an operator's: a worker's token is refused, and that stands in the audit log", async () => {
  const call = (token: string) =>
    api.guarded.request("/api/admin/command_reaper/sweep", {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
    });
  assert.equal((await call(TOKENS.worker)).status, 403);
  assert.equal((await call(TOKENS.operator)).status, 200);
});

test("the diagnosis lists what was looked at and what is wrong", async () => {
  const ask = async (query: string) => (await work.get(`/api/admin/diagnosis${query}`)).body as unknown as Diagnosis;
  const later = await ask("?stale_seconds=3600");
  assert.deepEqual(later.skipped, []);
  assert.ok(later.checks.includes("projection"));
  const about = ({ findings }: Diagnosis) => findings.filter(({ execution_ids: ids }) => ids?.includes(executionId));
  // There is no worker at all: that is told at once, however patient one is.
  const [found] = about(later);
  assert.deepEqual(
    [found?.check, found?.what],
    ["waiting_commands", "1 command of 1 execution waits: no worker is ready"],
  );
  assert.equal((await ask("")).stale_seconds, 60);
});

test("an invalid silence is 422", async () => {
  for (const seconds of ["0", "-1", "x", "1e3", "999999999", ""]) {
    assert.equal((await work.get(`/api/admin/diagnosis?stale_seconds=${seconds}`)).status, 422, seconds);
  }
});
