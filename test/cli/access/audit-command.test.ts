import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { folderWith } from "../../support/service/cli-process.ts";
import { addUser } from "../../support/service/users.ts";
import { openOperatedApi } from "../operated-api.ts";

const { api, commands } = await openOperatedApi();

test("the log is listed with filters, newest first, and as JSON", async (t) => {
  const run = await commands(t);
  const { email } = await addUser(api.database);
  for (const command of ["deactivate", "activate"]) assert.equal((await run("users", command, email)).code, 0);
  const { code, stdout, stderr } = await run("audit", "list", "--resource", `user/${email}`, "--limit", "2");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^TIME +WHO +ACTION +RESULT +ON +RULE\n\S+ +operator +user.update +allow +user\//);
  assert.equal(stdout.trim().split("\n").length, 3);
  const json = await run("audit", "list", "--action", "user.update", "--result", "allow", "--since", "1h", "--json");
  const { entries } = JSON.parse(json.stdout) as { entries: Record<string, unknown>[] };
  assert.ok(
    entries.length >= 2 &&
      entries.every(({ action, execution_id }) => action === "user.update" && execution_id === null),
  );
  assert.equal((await run("audit", "list", "--result", "perhaps")).code, 2);
  assert.match((await run("audit", "--help")).stdout, /flow audit verify --heads heads\.json/);
});

test("verify says that the log is whole; of one that is not it names the row, and exits with 1", async (t) => {
  const run = await commands(t);
  const whole = await run("audit", "verify", "--json");
  const told = JSON.parse(whole.stdout) as { whole: boolean; rows: number; heads: { seq: number }[] };
  assert.deepEqual([whole.code, told.whole, told.rows >= 2, told.heads.length >= 1], [0, true, true, true]);
  const file = join(await folderWith(t, {}), "heads.json");
  await writeFile(file, whole.stdout);
  assert.match((await run("audit", "verify", "--heads", file)).stdout, /^The audit log is whole: \d+ rows\n$/);

  const { sql } = api.database;
  await sql.unsafe(`
    alter table auth.audit_log disable trigger user;
    delete from auth.audit_log where chain_seq = 1;
    alter table auth.audit_log enable trigger user`);
  const broken = await run("audit", "verify");
  assert.equal(broken.code, 1);
  assert.match(broken.stdout, /^missing: row 1 of chain \d+ is missing$/m);
  assert.match(broken.stderr, /1 problem in/);
  await writeFile(file, "{}");
  const refused = await run("audit", "verify", "--heads", file);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /does not have the heads of an earlier verification/);
});
