import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { EXAMPLES, ROOT, startExampleApi } from "../examples/run-flow.ts";
import { createTestDatabase } from "../support/database/postgres.ts";
import { closedPort } from "../support/servers/http-server.ts";
import { startMcpServer } from "../support/servers/mcp-server.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { exampleScenarios } from "./example-scenarios.ts";
import { compare } from "./support/compare.ts";
import { startParityService } from "./support/service-run.ts";

/* Every example on both runtimes. */

const FOLDER = join(ROOT, EXAMPLES);
const playbooks = readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".yaml") && !name.endsWith(".test.yaml"))
  .sort();

test("every example gives the same result on both runtimes", async (t) => {
  const { url: _url, ...data } = await createTestDatabase();
  const api = await startExampleApi();
  t.after(() => api.close());
  // The first caller is answered 201: no run here is the first.
  for (const order of ["parity", "parity-2"]) await pay(api.origin, order);
  const mcp = await startMcpServer();
  t.after(() => mcp.close());
  const folder = await folderWith(t, {});
  const credentialsFile = join(folder, "credentials.json");
  const client = { token_url: `${api.origin}/token`, client_id: "flow", client_secret: "example" };
  const credentials = { pg_demo: { type: "sqldb", data }, example_client: { type: "oauth2", data: client } };
  await writeFile(credentialsFile, JSON.stringify(credentials), { mode: 0o600 });
  const surroundings = { folder: FOLDER, credentialsFile, env: {} };
  const service = await startParityService(t, surroundings);
  for (const name of playbooks) await service.register(await readFile(join(FOLDER, name), "utf8"));
  const scenarios = exampleScenarios({
    api: api.origin,
    mcp: mcp.endpoint,
    nobody: `http://127.0.0.1:${await closedPort()}`,
    csv: join(FOLDER, "data/orders.csv"),
  });
  for (const scenario of scenarios) {
    await t.test(scenario.name, async () => void (await compare(scenario, surroundings, service)));
  }
});

/** Charges an order under the key that the examples use. */
async function pay(origin: string, order: string): Promise<void> {
  const headers = { "idempotency-key": `charge-${order}` };
  const { status } = await fetch(`${origin}/payments`, {
    method: "POST",
    headers,
    body: JSON.stringify({ order, amount: 5 }),
  });
  assert.equal(status, 201);
}

test("no example is left out", () => {
  const run = new Set(exampleScenarios({ api: "", mcp: "", nobody: "", csv: "" }).map(({ path }) => path));
  assert.deepEqual(
    playbooks.map((name) => `examples/${name.replace(/\.yaml$/, "")}`).filter((path) => !run.has(path)),
    [],
  );
});
