import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "../repositories/service-database.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { playbook } from "../support/service/api.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

test("what a killed server has left of an execution that ended is deleted by the next one; what is open is read on", async (t) => {
  const { url: databaseUrl } = await createServedDatabase();
  const folder = await folderWith(t, {});
  // Without a worker, what it starts stays open.
  const settings = { ...ownDatabase(databaseUrl), FLOW_PURE_STEPS: "workers" };
  const first = await startServe(t, folder, settings);
  const call = async (url: string, path: string, body?: unknown) => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(`${url}${path}`, init);
    const answer = (await response.json()) as Record<string, unknown>;
    assert.ok(response.ok, JSON.stringify(answer));
    return answer;
  };
  const { catalog_id } = await call(first.url, "/api/catalog/register", { content: playbook("left") });
  const path = `/api/keychain/${String(catalog_id)}/k`;
  const start = async () => String((await call(first.url, "/api/execute", { catalog_id }))["execution_id"]);
  const [ended, running] = [await start(), await start()];
  const scopes = ["local", "shared"];
  for (const execution_id of [ended, running]) {
    for (const scope_type of scopes) {
      const entry = { token_data: { of: execution_id }, credential_type: "custom", scope_type, execution_id };
      await call(first.url, path, entry);
    }
  }
  first.process.kill("SIGKILL");
  await first.ended;
  const { sql } = open(databaseUrl);
  // As if it had been killed right after the commit that ended it.
  await sql`update flow.execution set status = 'CANCELLED', ended_at = now() where execution_id = ${ended}`;
  const second = await startServe(t, folder, settings);
  for (let left = -1; left !== 0; ) {
    left = (await sql`select 1 from flow.keychain where execution_id = ${ended}`).length;
  }
  for (const scope of scopes) {
    const found = await call(second.url, `${path}?scope_type=${scope}&execution_id=${running}`);
    assert.deepEqual([found["status"], found["token_data"]], ["success", { of: running }]);
  }
});
