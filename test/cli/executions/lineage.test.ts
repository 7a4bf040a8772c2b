import assert from "node:assert/strict";
import { test } from "node:test";
import { TWO_STEPS, workWith } from "../../support/service/api-work.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow lineage` against a server. */

const { api, commands } = await openOperatedApi();
const work = workWith(api);

test("a rerun shows what it changed, and not what followed from that", async (t) => {
  const run = await commands(t);
  await work.register("etl/load", TWO_STEPS);
  const id = await work.execute("etl/load");
  await work.runToEnd(id);
  const { stdout: rerun } = await run(
    "rerun",
    id,
    "--from",
    "end",
    "--set",
    "who=you",
    "--reason",
    "late",
    "--yes",
    "--json",
  );
  const { execution_id } = JSON.parse(rerun);
  await work.runToEnd(execution_id);
  const { code, stdout } = await run("lineage", id);
  assert.equal(code, 0);
  const [own, other] = stdout.split("\n");
  assert.match(own ?? "", new RegExp(`^${id}  etl/load v1  COMPLETED  .*← this one$`));
  assert.match(other ?? "", new RegExp(`^└─ rerun ${execution_id}  etl/load v1  COMPLETED  .*  from: end; `));
  assert.match(other ?? "", /input: who/);
  assert.match(other ?? "", /reason: late/);
  assert.doesNotMatch(other ?? "", /will_run|reused|by:/);
  // Its own lineage says the same of it.
  const { stdout: itsOwn } = await run("lineage", execution_id);
  assert.match(itsOwn, new RegExp(`\n└─ rerun ${execution_id}  .*from: end; .*input: who.*← this one\n`));
  const { changed } = JSON.parse((await run("lineage", execution_id, "--json")).stdout);
  assert.deepEqual([changed.from, changed.input, changed.reason], [["end"], ["who"], "late"]);
});

test("an execution that there is not is an error that names it", async (t) => {
  const { code, stderr } = await (await commands(t))("lineage", "4711");
  assert.equal(code, 2);
  assert.match(stderr, /4711/);
});
