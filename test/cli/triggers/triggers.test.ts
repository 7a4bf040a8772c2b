import assert from "node:assert/strict";
import { before, test } from "node:test";
import { workWith } from "../../support/service/api-work.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import { command } from "../in-process.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow triggers` against a server. */

const { api, commands } = await openOperatedApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
const STEP = "  - { step: start, tool: { kind: noop } }\n";
before(async () => {
  await work.register(
    "reports/nightly",
    `${STEP}triggers:\n  - { name: nightly, schedule: { cron: "0 6 * * *", timezone: Europe/Berlin } }\n  - { name: asked, signal: { name: go } }\n`,
  );
  await work.register("reports/weekly", `${STEP}triggers:\n  - { name: weekly, schedule: { cron: "0 6 * * 1" } }\n`);
});

test("triggers are listed, shown, turned off and on, and fired by playbook and name", async (t) => {
  const run = await commands(t);
  const listed = await run("triggers");
  assert.match(listed.stdout, /^TRIGGER +PLAYBOOK +NAME +KIND +ON +LAST FIRE +NEXT FIRE\n/);
  assert.match(listed.stdout, /reports\/nightly +nightly +schedule +yes +- +\d{4}-/);
  const next = await run("triggers", "next", "reports/nightly", "nightly", "-n", "2", "--from", "2026-03-28T12:00:00Z");
  assert.equal(next.stdout, "2026-03-29T04:00:00.000Z\n2026-03-30T04:00:00.000Z\n");
  const off = await run("triggers", "disable", "reports/weekly");
  assert.equal(off.stdout, "weekly of reports/weekly is turned off\n");
  assert.match((await run("triggers", "list", "--disabled", "--json")).stdout, /"name": ?"weekly"/);
  assert.match(
    (await run("triggers", "enable", "reports/weekly")).stdout,
    /^weekly of reports\/weekly is on, next fire /,
  );
  const fired = await run("triggers", "fire", "reports/weekly", "--key", "a");
  assert.match(fired.stdout, /^started execution \d+\n$/);
  assert.equal((await run("triggers", "fire", "reports/weekly", "--key", "a")).stdout, fired.stdout);
  assert.match((await run("triggers", "fires", "reports/weekly")).stdout, /started +\d+/);
  assert.match((await run("triggers", "show", "reports/weekly")).stdout, /^weekly of reports\/weekly \(schedule\)/);
});

test("a playbook with several triggers wants a name; what is not there is said", async (t) => {
  const run = await commands(t);
  const several = await run("triggers", "show", "reports/nightly");
  assert.equal(several.code, 2);
  assert.match(several.stderr, /give the name too, one of 'asked', 'nightly'/);
  const unknown = await run("triggers", "fire", "reports/nightly", "other");
  assert.deepEqual([unknown.code, /no trigger 'other' of 'reports\/nightly'/.test(unknown.stderr)], [2, true]);
  assert.equal((await run("triggers", "fires", "123")).code, 2);
});

test("a local run passes triggers over, and says so", async (t) => {
  const head = "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: p }\nworkflow:\n";
  const folder = await folderWith(t, {
    "with.yaml": `${head}${STEP}triggers: [{ name: often, schedule: { every: 1m } }]\n`,
    "without.yaml": `${head}${STEP}`,
  });
  const note = /note: its triggers are passed over here: they fire on a server/;
  const run = (file: string) => command(folder, ["run", file, "--runtime", "local"], { HOME: folder });
  const [some, none] = [await run("with.yaml"), await run("without.yaml")];
  assert.deepEqual([some.code, none.code], [0, 0], some.stderr);
  assert.match(some.stderr, note);
  assert.doesNotMatch(none.stderr, note);
});

test("a backfill: a preview shows times and gaps, then it is begun, and its status says what was started", async (t) => {
  const run = await commands(t);
  const range = ["reports/nightly", "nightly", "--from", "2026-03-28", "--to", "2026-03-31"];
  const preview = await run("backfill", ...range, "--dry-run");
  assert.equal(
    preview.stdout,
    `3 executions would be started
  2026-03-28T05:00:00.000Z  missing
  2026-03-29T04:00:00.000Z  missing
  2026-03-30T04:00:00.000Z  missing
Gaps, 3 times:
  2026-03-28T05:00:00.000Z to 2026-03-30T04:00:00.000Z, 3 times
`,
  );
  const begun = await run("backfill", ...range, "--max-active", "2", "--order", "newest");
  const [, id = ""] = /^Backfill (\d+): 3 executions to start\nNext: flow bulk status \1\n$/.exec(begun.stdout) ?? [];
  assert.notEqual(id, "", begun.stdout);
  while (await api.service.bulk.workOff());
  const status = await run("bulk", "status", id);
  assert.match(
    status.stdout,
    /^Bulk operation \d+ is completed: 3 of 3 started\n {2}2026-03-30T04:00:00.000Z {2}started \d+\n/,
  );
  const rest = await run("backfill", ...range, "--only-missing", "--dry-run", "--json");
  assert.deepEqual(JSON.parse(rest.stdout), { matched: 0, missing: 0, gaps: [], sample: [] });
  const whole = await run("backfill", ...range, "--dry-run");
  assert.match(whole.stdout, /started by \d+\nNo gaps: an execution was started for each time\n$/);
});

test("a backfill without a range, with a wrong one, or of a trigger that has no schedule", async (t) => {
  const run = await commands(t);
  const from = ["--from", "2026-01-01"];
  const to = ["--to", "2026-02-01"];
  for (const [words, message] of [
    [["reports/weekly", ...from], /Which times\? Give --to/],
    [["reports/weekly", ...from, ...to, "--max-active", "0"], /--max-active is a whole number from 1 to 1000; got '0'/],
    [["reports/weekly", ...from, ...to, "--max-active", "1001"], /--max-active is a whole number/],
    [["reports/weekly", ...from, ...to, "--order", "random"], /--order/],
    [["reports/weekly", ...from, "--to", "soon"], /'to' is no moment: 'soon'/],
    [["reports/nightly", "asked", ...from, ...to], /has no schedule, but signal/],
    [["reports/nightly", "other", ...from, ...to], /no trigger 'other'/],
  ] as const) {
    const { code, stderr } = await run("backfill", ...words);
    assert.match(stderr, message, words.join(" "));
    assert.equal(code, 2, words.join(" "));
  }
});
