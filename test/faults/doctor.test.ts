import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import type { Finding, Outcome } from "../../src/schema/api/doctor.ts";
import { flow, startFlow } from "../support/service/cli-process.ts";
import { WORK_DONE } from "./support/playbooks.ts";
import { openStand, SHORT, type Stand } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* A stuck execution is found and mended with the real program: server, workers, doctor, each a process of its own. */

/** Nothing looks for lost work by itself. */
const UNATTENDED: NodeJS.ProcessEnv = { ...SHORT, FLOW_COMMAND_REAPER_ENABLED: "false" };

/** `flow serve --role doctor` beside a server; gives its address. */
async function startDoctor(t: TestContext, { folder }: Stand, environment: NodeJS.ProcessEnv): Promise<string> {
  const doctor = startFlow(folder, ["serve", "--role", "doctor", "--port", "0"], environment);
  t.after(async () => {
    doctor.process.kill("SIGTERM");
    assert.equal((await doctor.ended).code, 0);
  });
  let said = "";
  for (;;) {
    const found = /doctor is ready at (http:\/\/\S+)\n/.exec(said)?.[1];
    if (found !== undefined) return found;
    const [text] = await Promise.race([
      once(doctor.process.stdout, "data"),
      doctor.ended.then(({ stderr }) => Promise.reject(new Error(`the doctor ended: ${stderr}`))),
    ]);
    said += text;
  }
}

async function invoke(doctor: string, tool: string, body: object = {}): Promise<Outcome> {
  const response = await fetch(`${doctor}/tools/${tool}/invoke`, { method: "POST", body: JSON.stringify(body) });
  assert.equal(response.status, 200);
  return (await response.json()) as Outcome;
}

/** What the outcome says of an execution. */
function about({ data }: Outcome, executionId: string): string[] {
  const findings = data["findings"] as unknown as Finding[];
  return findings.filter(({ execution_ids: ids }) => ids?.includes(executionId)).map(({ check }) => check);
}

test("an execution whose worker was killed is found, and continues when the doctor has its commands offered again", async (t) => {
  const stand = await openStand(t, UNATTENDED);
  const server = await stand.server();
  const client = await stand.client(server);
  const environment = { FLOW_SERVER_URL: server.url };
  const doctor = await startDoctor(t, stand, environment);
  const command = (...args: string[]) => flow(stand.folder, ["doctor", ...args], environment);

  const first = await stand.worker(server, "first");
  const held = stand.effects.hold("first");
  const [id = ""] = await stand.start(client, "work", 1);
  await held.arrived();
  await first.end("SIGKILL");
  await stand.worker(server, "second");

  // Found, over HTTP as on the command line, and through the database as through the server.
  await until("the doctor finds the stuck execution", async () => {
    const outcome = await invoke(doctor, "detect", { stale_seconds: 1 });
    return outcome.severity === "anomaly" && about(outcome, id).includes("stale_commands");
  });
  const detected = await command("detect", "--stale-seconds", "1", "--db-dsn", stand.databaseUrl);
  assert.equal(detected.code, 2, detected.stderr);
  const outcome = JSON.parse(detected.stdout) as Outcome;
  assert.deepEqual([outcome.data["looked_through"], about(outcome, id)], ["database", ["stale_commands"]]);

  // Mended. Until its lease is over the command is its old worker's: offered before that, no other worker can claim it.
  const repaired = await command("repair", "trigger-reaper");
  assert.equal(repaired.code, 0, repaired.stderr);
  assert.equal((JSON.parse(repaired.stdout) as Outcome).severity, "repaired");
  let isTaken = false;
  const taken = held.arrived(2).then(() => {
    isTaken = true;
  });
  await until("another worker has it", async () => isTaken || void (await invoke(doctor, "repair_trigger_reaper")));
  await taken;
  held.release();
  await stand.finish(client, [id], WORK_DONE);

  const after = await command("detect");
  assert.deepEqual(about(JSON.parse(after.stdout) as Outcome, id), []);
  assert.equal(after.code, 0, after.stdout);
});

test("work that no worker can take is found with the reason, and through the database when the server is gone", async (t) => {
  const stand = await openStand(t, UNATTENDED);
  const server = await stand.server();
  const client = await stand.client(server);
  const [id = ""] = await stand.start(client, "work", 1);
  const doctor = await startDoctor(t, stand, { FLOW_SERVER_URL: server.url });
  const waiting = async (body: object) => {
    const outcome = await invoke(doctor, "detect", { stale_seconds: 0.5, ...body });
    return about(outcome, id).includes("waiting_commands") && outcome;
  };
  const seen = await until("the doctor finds what waits", () => waiting({}));
  assert.match(JSON.stringify(seen.data["findings"]), /no worker is ready/);
  await server.end("SIGKILL");
  const direct = await until("the doctor looks past the server", () => waiting({ db_dsn: stand.databaseUrl }));
  assert.match(JSON.stringify(direct.data["findings"]), /server_unreachable/);
  // Nothing is known where neither can be asked.
  assert.equal((await invoke(doctor, "detect")).severity, "error");
  const reached = await invoke(doctor, "reachability", { db_dsn: stand.databaseUrl });
  assert.equal(reached.severity, "anomaly");
});
