import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { createServedDatabase, createTestDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";
import { answerOf } from "../support/service/server-calls.ts";

/* A playbook that names the database beside the worker, and the same database by a credential that an operator has stored. */

const OPERATOR = randomUUID();

test("a worker of a service reaches a private database by a stored credential, not because a playbook names it", async (t) => {
  const { url: databaseUrl } = await createServedDatabase();
  const { url: other } = await createTestDatabase();
  const { hostname: host, port, username, password, pathname } = new URL(other);
  const user = decodeURIComponent(username);
  const data = { host, port: Number(port), user, password: decodeURIComponent(password), database: pathname.slice(1) };
  const environment = { ...ownDatabase(databaseUrl), FLOW_SERVER_TOKEN: OPERATOR, FLOW_WORKER_TOKEN: randomUUID() };
  const { url } = await startServe(t, await folderWith(t, {}), environment, ["--role", "all"]);
  const call = (path: string, body?: unknown) =>
    answerOf(url, OPERATOR, body === undefined ? "GET" : "POST", path, body);
  const meta = { playbooks: ["**"] };
  await call("/api/credentials", { name: "near", type: "sqldb", data, meta });
  await call("/api/credentials", { name: "shut", type: "sqldb", data: { ...data, allow_private: false }, meta });
  const outcome = async (name: string, task: Record<string, unknown>): Promise<string> => {
    const tool = JSON.stringify({ kind: "sqldb", query: "select 1 as n", ...task });
    const content = `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}, path: ${name}}\nworkflow:\n  - step: look\n    tool: ${tool}\n`;
    await call("/api/catalog/register", { content });
    const { execution_id: id } = await call("/api/execute", { path: name });
    const { status, error } = await call(`/api/executions/${String(id)}/result?wait_ms=30000`);
    return status === "COMPLETED" ? "reached" : String((error as { code?: string }).code);
  };
  assert.equal(await outcome("stored", { auth: "near" }), "reached");
  assert.equal(await outcome("named", data), "EGRESS_REFUSED");
  assert.equal(await outcome("inline", { auth: { type: "sqldb", ...data } }), "EGRESS_REFUSED");
  assert.equal(await outcome("moved", { auth: "near", host: "127.0.0.2" }), "EGRESS_REFUSED");
  assert.equal(await outcome("scanned", { auth: "near", port: 22 }), "EGRESS_REFUSED");
  assert.equal(await outcome("shut_by_operator", { auth: "shut" }), "EGRESS_REFUSED");
});
