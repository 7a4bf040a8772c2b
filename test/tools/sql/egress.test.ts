import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import { TRANSFER_SOURCE, TRANSFER_TARGET } from "../../../src/schema/words/task-kinds.ts";
import type { Credential } from "../../../src/tools/contract/tool.ts";
import { createToolRegistry, type ToolRegistry } from "../../../src/tools/registry.ts";
import { sqlEgress } from "../../../src/tools/sql/socket.ts";
import { createSqldbTool } from "../../../src/tools/sqldb/sqldb.ts";
import { createTestDatabase } from "../../support/database/postgres.ts";
import { toolCall } from "../../support/service/tool-call.ts";

/* Which databases a playbook's tasks may reach, tried on a real PostgreSQL at a private address, that of this machine. */

let login: { host: string; port: number; user: string; password: string; database: string };
/** A worker's tools where private addresses are closed, and those of one's own machine. */
const store = { load: () => Promise.resolve(null) };
const closed = createToolRegistry({ allowPrivate: [], store });
const own = createToolRegistry({ allowPrivate: "all", store });

before(async () => {
  const url = new URL((await createTestDatabase()).url);
  login = {
    host: url.hostname,
    port: Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: url.pathname.slice(1),
  };
  assert.equal(login.host, "127.0.0.1");
});
after(async () => {
  await Promise.all([closed.close(), own.close()]);
});

function credential(data: JsonObject, isStored: boolean): Record<string, Credential> {
  const made: Credential = { name: "pg", type: "sqldb", data, ...(isStored && { isStored }) };
  return { pg: made, default: made };
}

async function run(
  tools: ToolRegistry,
  config: JsonObject,
  auth: Record<string, Credential> = {},
  kind = "sqldb",
): Promise<string> {
  const result: ToolResult = await (await tools.get(kind)).run(toolCall(config, { auth }));
  return result.status === "ok" ? "reached" : `${result.error?.code}: ${result.error?.message}`;
}

const query = "select 1 as n";

for (const host of [
  "127.0.0.1",
  "localhost",
  "::1",
  "::ffff:127.0.0.1",
  "0x7f000001",
  "2130706433",
  "0.0.0.0",
  "10.1.2.3",
  "169.254.169.254",
  "168.63.129.16",
  "/var/run/postgresql",
]) {
  test(`a playbook's own host ${host} is refused before anything is sent; on one's own machine it is not`, async () => {
    assert.match(await run(closed, { ...login, host, query }), /^EGRESS_REFUSED: Refused to connect to/);
    assert.match(await run(closed, { query, auth: { type: "sqldb", ...login, host } }), /^EGRESS_REFUSED/);
    assert.match(await run(closed, { query }, credential({ ...login, host }, false)), /^EGRESS_REFUSED/);
    if (host === "127.0.0.1") assert.equal(await run(own, { ...login, host, query }), "reached");
  });
}

test("a connection string is no way around it", async () => {
  const { user, password, port, database } = login;
  const text = `postgres://${user}:${password}@example.com:${port}/${database}?host=127.0.0.1`;
  assert.match(await run(closed, { connection_string: text, query }), /^EGRESS_REFUSED/);
  const socket = `host=/var/run/postgresql dbname=${database}`;
  assert.match(await run(closed, { connection_string: socket, query }), /^EGRESS_REFUSED: .*unix socket/);
});

test("a source and a target of a transfer obey the same rule", async () => {
  const stored = credential(login, true);
  assert.equal(await run(closed, { command: "create table rows_of_transfer (n int)" }, stored), "reached");
  const source = { type: "sqldb", ...login, query };
  const target = { type: "sqldb", ...login, table: "rows_of_transfer" };
  const config = { source, target };
  assert.equal(await run(own, config, {}, "transfer"), "reached");
  assert.match(await run(closed, config, {}, "transfer"), /^EGRESS_REFUSED/);
  const bySource = { source: { type: "sqldb", query }, target };
  const sourceOnly = { [TRANSFER_SOURCE]: stored["pg"]! };
  assert.match(await run(closed, bySource, sourceOnly, "transfer"), /^EGRESS_REFUSED/, "the target by itself");
  const both = { [TRANSFER_SOURCE]: stored["pg"]!, [TRANSFER_TARGET]: stored["pg"]! };
  const byCredentials = { source: { type: "sqldb", query }, target: { type: "sqldb", table: "rows_of_transfer" } };
  assert.equal(await run(closed, byCredentials, both, "transfer"), "reached");
});

test("the host of a stored credential is reached: an operator has stored it; another host or port with it is not", async () => {
  const stored = credential(login, true);
  assert.equal(await run(closed, { query }, stored), "reached");
  assert.equal(await run(closed, { query, database: login.database }, stored), "reached");
  assert.match(await run(closed, { query, host: "127.0.0.2" }, stored), /^EGRESS_REFUSED/);
  assert.match(await run(closed, { query, port: 22 }, stored), /^EGRESS_REFUSED/);
  assert.match(await run(closed, { query }, credential({ ...login, allow_private: false }, true)), /^EGRESS_REFUSED/);
});

for (const host of ["169.254.169.254", "168.63.129.16", "fd00:ec2::254", "100.100.100.200", "fe80::1"]) {
  test(`a stored credential's host ${host} is refused: a cloud answers its machines there`, async () => {
    assert.match(await run(closed, { query }, credential({ ...login, host }, true)), /^EGRESS_REFUSED/);
  });
}

test("the address that was checked is the one that is dialled: a name that changes its answer reaches nothing", async () => {
  const answers = ["127.0.0.1", "127.0.0.2"];
  let asked = 0;
  const guard = createEgressGuard({
    allowPrivate: ["127.0.0.1"],
    resolve: () => Promise.resolve([{ address: answers[asked++] ?? "127.0.0.2", family: 4 }]),
  });
  const tool = createSqldbTool({ egress: sqlEgress([], guard) });
  const config = { ...login, host: "database.example", query };
  const results = await tool.run(toolCall(config));
  assert.deepEqual([results.status, asked], ["ok", 1]);
  // Another session, and with it another question: the answer is refused.
  const refused = await tool.run(toolCall({ ...config, database: "other" }));
  assert.equal(refused.error?.code, "EGRESS_REFUSED");
  await tool.close?.();
});

test("a server that takes the connection and never answers is given up", async () => {
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const guard = createEgressGuard({ allowPrivate: "all" });
  const tool = createSqldbTool({ egress: sqlEgress("all", guard), connectTimeoutMs: 300 });
  const { port } = silent.address() as { port: number };
  const result = await tool.run(toolCall({ ...login, port, query }));
  assert.equal(`${result.error?.kind} ${result.error?.code}`, "db_connection CONNECT_TIMEOUT");
  await tool.close?.();
  silent.close();
});
