import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow bulk` against a server. */

const { api, commands } = await openOperatedApi();
const work = workWith(api);
before(() => work.register("etl/bulk", ONE_STEP));

const FILTER = ["--filter", "path:etl/bulk status:running"];

test("a preview lists what it would be; the operation says how it can be followed, and its status what came of it", async (t) => {
  const run = await commands(t);
  const ids = [await work.execute("etl/bulk"), await work.execute("etl/bulk")];
  const preview = await run("bulk", "cancel", ...FILTER, "--dry-run");
  assert.equal(
    preview.stdout,
    `2 executions would be cancelled\n${[...ids]
      .reverse()
      .map((id) => `  ${id}  RUNNING  etl/bulk\n`)
      .join("")}`,
  );
  const started = await run("bulk", "cancel", ...FILTER, "--reason", "wrong day");
  const [, id = ""] =
    /^Bulk operation (\d+): 2 executions to cancel\nNext: flow bulk status \d+\n$/.exec(started.stdout) ?? [];
  assert.notEqual(id, "", started.stdout);
  assert.match((await run("bulk", "status", id)).stdout, /^Bulk operation \d+ is running: 0 of 2 cancelled\n$/);
  assert.match((await run("bulk", "hold", id)).stdout, /is paused/);
  assert.match((await run("bulk", "continue", id)).stdout, /is running/);
  while (await api.service.bulk.workOff());
  const done = await run("bulk", "status", id, "--wait");
  assert.deepEqual([done.code, done.stdout], [0, `Bulk operation ${id} is completed: 2 of 2 cancelled\n`]);
  assert.equal(JSON.parse((await run("bulk", "status", id, "--json")).stdout).counts.done, 2);
  assert.equal((await run("bulk", "stop", id)).code, 1);
});

test("nothing matches: it has ended at once", async (t) => {
  const run = await commands(t);
  const { stdout } = await run("bulk", "pause", "--filter", "path:etl/nothing", "--wait");
  assert.match(stdout, /is completed: 0 of 0 paused\n$/);
});

test("no filter, an empty one, one that cannot be read, and an id that is no number", async (t) => {
  const run = await commands(t);
  const cases: [string[], RegExp][] = [
    [["cancel"], /--filter/],
    [["cancel", "--filter", "stauts:failed"], /there is no key 'stauts'/],
    [["status", "x"], /got 'x'/],
  ];
  for (const [words, expected] of cases) {
    const { code, stderr } = await run("bulk", ...words);
    assert.equal(code, 2, stderr);
    assert.match(stderr, expected);
  }
});
