import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { after, before, type TestContext, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { runCli } from "../../../src/cli/main.ts";
import type { Outcome } from "../../../src/schema/api/doctor.ts";
import { closedPort, startHttpServer, type TestHttpServer } from "../../support/servers/http-server.ts";
import { folderWith, playbookText } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";

/* `flow doctor`, which is what `flow-doctor` runs, against a server that is played. */

const FINDING = {
  check: "stale_commands",
  level: "anomaly",
  what: "w",
  since: null,
  why_it_matters: "y",
  what_to_do: "d",
  command: "c",
};
const SWEPT = { status: "ok", republished: { pending: 1, worker: 2, timeout: 0 }, total: 3, more: false };

/** What the played server finds, and whether it is of an older version. */
let played: { findings: object[]; isOld: boolean };
let server: TestHttpServer;
before(async () => {
  server = await startHttpServer(({ url }, response) => {
    const answers: Record<string, object> = {
      "/api/health": { status: "ok" },
      "/api/worker/pools": { items: [] },
      "/metrics": {},
    };
    if (!played.isOld) {
      answers["/api/admin/command_reaper/sweep"] = SWEPT;
      const counts = { commands_pending: 1 };
      answers["/api/admin/diagnosis"] = {
        stale_seconds: 60,
        checks: [],
        findings: played.findings,
        skipped: [],
        counts,
      };
    }
    const answer = answers[url.split("?")[0] ?? ""];
    response.statusCode = answer === undefined ? 404 : 200;
    response.end(JSON.stringify(answer ?? { error: "none", code: "NOT_FOUND", request_id: "1" }));
  });
});
after(() => server.close());

function collecting() {
  let text = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk);
      done();
    },
  });
  return { stream, text: () => text };
}

/** Runs `flow doctor …` in this process, in an empty folder, with the played server. */
async function doctor(
  t: TestContext,
  args: readonly string[],
  more: { environment?: object; isOld?: boolean; findings?: object[]; columns?: number } = {},
) {
  played = { findings: more.findings ?? [], isOld: more.isOld ?? false };
  server.requests.length = 0;
  const folder = await folderWith(t, { "fine.yaml": FINE, "broken.yaml": BROKEN });
  const [stdout, stderr] = [collecting(), collecting()];
  const environment = { HOME: folder, XDG_CONFIG_HOME: folder, FLOW_SERVER_URL: server.origin, ...more.environment };
  const io = {
    stdout: stdout.stream,
    stderr: stderr.stream,
    environment,
    folder,
    signal: new AbortController().signal,
  };
  if (more.columns !== undefined) Object.assign(stdout.stream, { isTTY: true, columns: more.columns });
  const code = await runCli(["doctor", ...args], io);
  const text = stdout.text();
  const outcome = text.startsWith("{") ? (JSON.parse(text) as Outcome) : undefined;
  return { code, outcome, text: stripVTControlCharacters(text), stderr: stderr.text() };
}

/** What the playbook of a `repair run-playbook` gave; those that are bundled give an outcome. */
function resultOf(outcome: Outcome | undefined): Outcome {
  assert.ok(outcome !== undefined);
  return (outcome.data["run"] as unknown as { result: Outcome }).result;
}

const FINE = playbookText("fine", "  - step: end\n    tool: {kind: noop, result: {who: '{{ workload.who }}'}}\n");
const BROKEN = playbookText("broken", "  - step: end\n    tool: {kind: python, code: 'raise ValueError(1)'}\n");

test("detect: 0 where nothing is wrong, 2 with an anomaly, 3 where there is nothing to ask", async (t) => {
  const fine = await doctor(t, ["detect"]);
  assert.deepEqual([fine.code, fine.outcome?.action, fine.outcome?.severity], [0, "detect", "ok"]);
  const wrong = await doctor(t, ["detect", "--stale-seconds", "7"], { findings: [FINDING] });
  assert.deepEqual([wrong.code, wrong.outcome?.severity], [2, "anomaly"]);
  assert.ok(server.requests.some(({ url }) => url === "/api/admin/diagnosis?stale_seconds=7"));
  const away = await doctor(t, ["detect", "--server-url", `http://127.0.0.1:${await closedPort()}`]);
  assert.deepEqual([away.code, away.outcome?.severity], [3, "error"]);
  assert.match(away.stderr, /^flow doctor: The server at .* did not answer/);
});

test("on a terminal detect prints a table that fits it, and below it what to do; --json prints the object", async (t) => {
  const what = "3 commands of 1 execution wait: no ready worker has the labels gpu=true,zone=eu";
  const since = new Date(Date.now() - 300_000).toISOString();
  const findings = [
    { ...FINDING, what, since, execution_ids: ["7\u001b[2J"] },
    { ...FINDING, level: "notice" },
  ];
  const { code, text } = await doctor(t, ["detect"], { findings, columns: 60 });
  assert.equal(code, 2);
  const lines = text.split("\n");
  assert.match(lines[0] ?? "", /^# +LEVEL +SINCE +WHAT$/);
  assert.match(lines[1] ?? "", /^1 +anomaly +5m ago +3 commands of 1 .*…$/);
  assert.match(lines[2] ?? "", /^2 +notice +- +w$/);
  assert.ok(lines.slice(0, 3).every((line) => line.length <= 60));
  assert.ok(text.includes(`\n1  ${what}\n   y\n   d\n   executions: 7\n   $ c\n`), text);
  assert.match(text, /commands pending 1\n$/);

  assert.match((await doctor(t, ["detect"], { columns: 80 })).text, /^✓ nothing is wrong/);
  assert.equal((await doctor(t, ["detect", "--json"], { columns: 80 })).outcome?.severity, "ok");
  assert.match(
    (await doctor(t, ["reachability"], { columns: 80 })).text,
    /^TARGET +STATE +TIME +ADDRESS\nserver +answers /,
  );
});

test("reachability: exit code 0 if all answer, 2 otherwise", async (t) => {
  assert.equal((await doctor(t, ["reachability"])).code, 0);
  const away = await doctor(t, ["reachability", "--server-url", `http://127.0.0.1:${await closedPort()}`]);
  assert.deepEqual([away.code, away.outcome?.severity], [2, "anomaly"]);
});

test("repair trigger-reaper: 0 when it repaired, and 0 against a server that is too old for it", async (t) => {
  const repaired = await doctor(t, ["repair", "trigger-reaper"]);
  assert.deepEqual([repaired.code, repaired.outcome?.severity, repaired.outcome?.data["total"]], [0, "repaired", 3]);
  const old = await doctor(t, ["repair", "trigger-reaper"], { isOld: true });
  assert.deepEqual([old.code, old.outcome?.severity, old.outcome?.data["status"]], [0, "ok", "not_supported"]);
});

test("repair run-playbook: runs here with its inputs; its result, or its error, is in the outcome", async (t) => {
  const fine = await doctor(t, ["repair", "run-playbook", "fine.yaml", "--set", "who=world"]);
  assert.deepEqual([fine.code, fine.outcome?.severity], [0, "repaired"]);
  assert.deepEqual(resultOf(fine.outcome), { who: "world" });
  const broken = await doctor(t, ["repair", "run-playbook", "broken.yaml"]);
  assert.deepEqual([broken.code, broken.outcome?.severity], [3, "error"]);
  assert.match(String(broken.outcome?.data["error"]), /ValueError/);
  const missing = await doctor(t, ["repair", "run-playbook", "missing.yaml"]);
  assert.deepEqual([missing.code, missing.outcome?.severity], [3, "error"]);
});

const MISTAKES: readonly string[][] = [
  [],
  ["detec"],
  ["detect", "--unknown"],
  ["detect", "trigger-reaper"],
  ["detect", "--stale-seconds", "soon"],
  ["detect", "--stale-seconds", "0"],
  ["detect", "--set", "a=b"],
  ["reachability", "--stale-seconds", "5"],
  ["repair"],
  ["repair", "run-playbook"],
  ["repair", "trigger-reaper", "file.yaml"],
  ["repair", "trigger-reaper", "--db-dsn", "postgres://a/b"],
  ["mcp"],
  ["mcp", "serve", "--port", "70000"],
  ["detect", "--server-url", "ftp://host"],
];
test("a command line that is not understood is 3: a monitor must not take it for an anomaly", async (t) => {
  for (const args of MISTAKES) {
    const { code, stderr, outcome } = await doctor(t, args);
    assert.equal(code, 3, args.join(" "));
    assert.match(stderr, /^flow: /, args.join(" "));
    assert.equal(outcome, undefined);
  }
});

test("a setting that cannot be used is 3 as well", async (t) => {
  assert.equal((await doctor(t, ["detect"], { environment: { FLOW_DOCTOR_PORT: "x" } })).code, 3);
});

const ROOT = join(import.meta.dirname, "../../../..");
const BUNDLED: Readonly<Record<string, string>> = {
  detect_stuck_executions: "detect",
  inspect_stale_commands: "inspect",
  reachability_smoke: "probe",
  trigger_command_reaper: "trigger",
};

test("each bundled playbook explains itself when its action is unknown, and makes no call", async (t) => {
  const files = readdirSync(join(ROOT, "playbooks/doctor")).filter((name) => name.endsWith(".yaml"));
  assert.deepEqual(
    files.sort(),
    [...Object.keys(BUNDLED), "provision_doctor_mcp"].map((name) => `${name}.yaml`).sort(),
  );
  for (const name of [...Object.keys(BUNDLED), "provision_doctor_mcp"]) {
    const set = ["--set", "action=surprise", "--set", `server_url=${server.origin}`];
    const { code, outcome } = await doctor(t, ["repair", "run-playbook", name, ...set]);
    assert.equal(code, 0, name);
    const result = resultOf(outcome);
    assert.deepEqual([result.action, result.data["unknown_action"]], ["help", "surprise"], name);
    assert.equal(server.requests.length, 0, name);
  }
});

/** The outcome of a bundled playbook. */
async function bundled(t: TestContext, name: string, url: string, more: Parameters<typeof doctor>[2] = {}) {
  const set = ["--set", `action=${BUNDLED[name]}`, "--set", `server_url=${url}`];
  const { code, outcome } = await doctor(t, ["repair", "run-playbook", name, ...set], more);
  const result = resultOf(outcome);
  return { code, ...result };
}

test("the bundled playbooks look and repair as the commands do, and their severity is that of the outcome", async (t) => {
  const findings = [FINDING, { ...FINDING, check: "dead_rows" }];
  const detected = await bundled(t, "detect_stuck_executions", server.origin, { findings });
  assert.deepEqual([detected.code, detected.action, detected.severity], [2, "detect", "anomaly"]);
  assert.deepEqual(detected.data["findings"], findings);
  const inspected = await bundled(t, "inspect_stale_commands", server.origin, { findings });
  assert.deepEqual([inspected.code, inspected.severity], [2, "anomaly"]);
  assert.deepEqual(inspected.data["findings"], [FINDING], "what is about commands");
  const quiet = await bundled(t, "detect_stuck_executions", server.origin);
  assert.deepEqual([quiet.code, quiet.severity], [0, "ok"]);
  const probed = await bundled(t, "reachability_smoke", server.origin);
  assert.deepEqual([probed.code, probed.severity], [0, "ok"]);
  const triggered = await bundled(t, "trigger_command_reaper", server.origin);
  assert.deepEqual([triggered.code, triggered.severity, triggered.data["total"]], [0, "repaired", 3]);
  const old = await bundled(t, "trigger_command_reaper", server.origin, { isOld: true });
  assert.deepEqual([old.code, old.severity, old.data["status"]], [0, "ok", "not_supported"]);
});

test("the bundled playbooks say that a server does not answer, and do not fail", async (t) => {
  const url = `http://127.0.0.1:${await closedPort()}`;
  const severities = await Promise.all(
    Object.keys(BUNDLED).map(async (name) => (await bundled(t, name, url)).severity),
  );
  assert.deepEqual(severities, ["error", "error", "anomaly", "error"]);
});

test("a bundled playbook sends the token of a credential", async (t) => {
  const environment = { FLOW_CREDENTIAL_FLOW_SERVER: '{"type": "bearer", "data": {"token": "t-1"}}' };
  const set = ["--set", "action=detect", "--set", `server_url=${server.origin}`, "--set", "auth=flow_server"];
  const { code } = await doctor(t, ["repair", "run-playbook", "detect_stuck_executions", ...set], { environment });
  assert.equal(code, 0);
  assert.equal(server.requests[0]?.headers.authorization, "Bearer t-1");
});

const KUBECTL = `#!/bin/sh
printf '%s\\n' "$*" >> "$(dirname "$0")/calls"
`;
const CALLS: Readonly<Record<string, string[]>> = {
  deploy: ["apply --filename m.yaml", "rollout status deployment/flow-doctor --timeout 120s"],
  redeploy: ["rollout restart deployment/flow-doctor", "rollout status deployment/flow-doctor --timeout 120s"],
  status: ["get deployment/flow-doctor --output wide", "rollout status deployment/flow-doctor --watch=false"],
  destroy: ["delete --ignore-not-found --filename m.yaml"],
  logs: ["logs deployment/flow-doctor --tail 200"],
};

test("provision_doctor_mcp calls kubectl for each of its actions, with its inputs as they are", async (t) => {
  const { chmod, readFile, rm } = await import("node:fs/promises");
  const folder = await folderWith(t, { kubectl: KUBECTL });
  const kubectl = join(folder, "kubectl");
  await chmod(kubectl, 0o755);
  const namespace = "n; touch gone";
  for (const [action, calls] of Object.entries(CALLS)) {
    const inputs = [`action=${action}`, `kubectl=${kubectl}`, "manifest=m.yaml", `namespace=${namespace}`];
    const args = ["repair", "run-playbook", "provision_doctor_mcp", ...inputs.flatMap((input) => ["--set", input])];
    assert.equal((await doctor(t, args)).code, 0, action);
    const called = (await readFile(join(folder, "calls"), "utf8")).trimEnd().split("\n");
    assert.deepEqual(
      called,
      calls.map((call) => `--namespace ${namespace} ${call}`),
      action,
    );
    await rm(join(folder, "calls"));
  }
});

test("provision_doctor_mcp without kubectl says what is missing", async (t) => {
  const set = ["--set", "action=status", "--set", "kubectl=no-such-kubectl"];
  const { code, outcome } = await doctor(t, ["repair", "run-playbook", "provision_doctor_mcp", ...set]);
  assert.equal(code, 3);
  const result = resultOf(outcome);
  assert.match(String(result.data["error"]), /There is no program 'no-such-kubectl' on PATH/);
});

test("the playbooks run through the command line as any other", async (t) => {
  const folder = await folderWith(t, {});
  const file = join(ROOT, "playbooks/doctor/reachability_smoke.yaml");
  played = { findings: [], isOld: false };
  const args = [
    "run",
    file,
    "--runtime",
    "local",
    "--set",
    "action=probe",
    "--set",
    `server_url=${server.origin}`,
    "--json",
  ];
  const { code, stdout } = await runFlow(folder, args);
  assert.equal(code, 0);
  assert.equal((JSON.parse(stdout) as { result: Outcome }).result.severity, "ok");
});
