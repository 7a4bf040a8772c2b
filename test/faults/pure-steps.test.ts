import { test } from "node:test";
import { LONG, openStand } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* Servers that run steps without effects are killed: what they had not written is done again, what they had written is not. */

const LENGTH = 200;
const CHAIN = `apiVersion: flow/v2
kind: Playbook
metadata: {name: long, path: pure/long}
workflow:
${Array.from({ length: LENGTH }, (_, at) => {
  const next = at + 1 < LENGTH ? `, next: s${at + 1}` : "";
  return `  - {step: s${at}, tool: {kind: noop, result: {n: ${at + 1}}}, set: {ctx.sum: "{{ (sum | default(0)) + s${at}.n }}"}${next}}`;
}).join("\n")}
`;

/** How often a server is killed. */
const KILLS = 2;

test("killed servers lose no step that they ran themselves, and do none twice", async (t) => {
  const stand = await openStand(t, { ...LONG, FLOW_PURE_STEPS: "server" });
  const servers = [await stand.server(), await stand.server()];
  // What a dead server held is claimed by a worker.
  for (const [at, server] of servers.entries()) await stand.worker(server, `w${at}`);
  const client = await stand.client(...servers);
  await client.register(CHAIN);
  const ids: string[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    ids.push(...(await stand.start(client, "pure/long", 4)));
    const at = kill % servers.length;
    const under = await until("an execution is under way", async () => {
      const { sql } = stand.database;
      const rows = await sql`select from flow.execution where ended_at is null and last_event_id > execution_id + 64`;
      return rows.length > 0 || (await sql`select from flow.execution where ended_at is null`).length === 0;
    });
    t.diagnostic(`killed with executions under way: ${under}`);
    const { port } = servers[at]!;
    await servers[at]!.end("SIGKILL");
    servers[at] = await stand.server({}, port);
  }
  // A killed server takes the answer to a claim with it: that command is claimed again.
  await stand.finish(client, ids, { result: { n: LENGTH }, once: true, owed: ["w0", "w1"] });
});
