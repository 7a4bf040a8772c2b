import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { type TestContext, test } from "node:test";
import { runFlow } from "../../cli/in-process.ts";
import { until } from "../../faults/support/until.ts";
import { createServedDatabase, createTestDatabase } from "../../support/database/postgres.ts";
import { ownDatabase } from "../../support/engine/key-ring.ts";
import { folderWith, MAIN } from "../../support/service/cli-process.ts";
import { startServe } from "../../support/service/serve.ts";
import { answerOf } from "../../support/service/server-calls.ts";

/* What every user of the machine can list of flow's commands: their arguments. Secrets have other ways, and those that are there are warned of. */

const CANARY = "canary-of-arguments-7f3a";

test("no process of a service with an embedded database shows a password, a token or a key in its arguments", async (t) => {
  const folder = await folderWith(t, {});
  const tokens = {
    FLOW_SERVER_TOKEN: `${CANARY}-operator-token-1234567`,
    FLOW_WORKER_TOKEN: `${CANARY}-worker-token-12345678`,
  };
  const { url } = await startServe(t, folder, tokens, ["--role", "all"]);
  const environment = { HOME: folder, FLOW_SERVER_URL: url, FLOW_SERVER_TOKEN: tokens.FLOW_SERVER_TOKEN };
  // A pipe that stays open holds the command while its arguments are looked at.
  const { PATH } = process.env;
  const args = ["credentials", "set", "piped", "--type", "bearer", "token=@-", "--paths", "a"];
  const set = spawn(process.execPath, [MAIN, ...args], {
    cwd: folder,
    env: { PATH, ...environment },
    stdio: ["pipe", "ignore", "pipe"],
  });
  set.stdin.write(CANARY);
  const secrets = [CANARY, ...(await keptSecrets(folder))];
  const lines = await commandLines();
  assert.ok(
    lines.some((line) => line.includes("token=@-")),
    "the command is seen",
  );
  assert.ok(
    lines.some((line) => line.includes(folder) && /postgres/.test(line)),
    "the database is seen",
  );
  for (const secret of secrets)
    assert.deepEqual(
      lines.filter((line) => line.includes(secret)),
      [],
    );
  set.stdin.end();
  const [code] = (await once(set, "close")) as [number];
  assert.equal(code, 0);
});

for (const isolation of ["none", "auto"]) {
  test(`the code of a task is in no argument while it runs, with the isolation ${isolation}`, async (t) => {
    const folder = await folderWith(t, {});
    const canary = `${CANARY}-of-code-${isolation}`;
    const token = `${CANARY}-operator-token-1234567`;
    const { url: databaseUrl } = await createServedDatabase();
    const settings = {
      ...ownDatabase(databaseUrl),
      FLOW_WORKER_TOOLS: "all",
      FLOW_SERVER_TOKEN: token,
      FLOW_WORKER_TOKEN: `${token}-w`,
      FLOW_TASK_ISOLATION: isolation,
      FLOW_WORKER_DRAIN_SECONDS: "1",
    };
    const { url } = await startServe(t, folder, settings, ["--role", "all"]);
    const call = (path: string, body: unknown) => answerOf(url, token, "POST", path, body);
    // What the code starts is seen, so the code runs.
    const seconds = String(randomInt(1e8, 1e9));
    for (const [kind, tool] of Object.entries({
      shell: `{kind: shell, cmd: "sleep ${seconds}1 # {{ workload.secret }}"}`,
      python: `{kind: python, code: "import subprocess; subprocess.run(['sleep', '${seconds}2']) # ${canary}"}`,
    })) {
      const content = `{apiVersion: flow/v2, kind: Playbook, metadata: {name: a, path: ${kind}}, workload: {secret: ""}, workflow: [{step: a, tool: ${tool}}]}`;
      await call("/api/catalog/register", { content });
      await call("/api/execute", { path: kind, workload: { secret: canary } });
    }
    let lines: string[] = [];
    await until("both run", async () => {
      lines = await commandLines();
      return ["1", "2"].every((which) => lines.includes(`sleep\0${seconds}${which}\0`));
    });
    assert.deepEqual(
      lines.filter((line) => line.includes(canary)),
      [],
    );
  });
}

/** Passwords and keys that the embedded database and its server keep in files. */
async function keptSecrets(folder: string): Promise<string[]> {
  const files = await readdir(`${folder}/.flow`, { recursive: true });
  const named = files.filter((file) => /(^|\/)((auth-)?password|encryption-keys)$/.test(file));
  const texts = await Promise.all(named.map((file) => readFile(`${folder}/.flow/${file}`, "utf8")));
  assert.equal(texts.length, 3, files.filter((file) => !file.includes("base")).join(", "));
  return texts.map((text) => text.trim().split(":").at(-1) ?? "");
}

async function commandLines(): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  // A process that ended meanwhile shows nothing.
  return await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")));
}

const warns = async (context: TestContext, words: readonly string[], environment: NodeJS.ProcessEnv = {}) => {
  const folder = await folderWith(context, {});
  const { stderr } = await runFlow(folder, words, {
    HOME: folder,
    FLOW_SERVER_URL: "http://127.0.0.1:1",
    ...environment,
  });
  assert.ok(!stderr.includes(CANARY), stderr);
  return /is a secret that other users of this machine can see on the command line: (.*)/.exec(stderr)?.[1];
};

test("a command that is given a secret as an argument warns, and says how else to give it", async (t) => {
  const set = ["credentials", "set", "c", "--type"];
  assert.equal(await warns(t, [...set, "bearer", `token=${CANARY}`]), "token=@FILE reads a file, token=@- a pipe");
  assert.equal(
    await warns(t, [...set, "sqldb", "host=db", `password=${CANARY}`]),
    "password=@FILE reads a file, password=@- a pipe",
  );
  assert.equal(await warns(t, [...set, "basic", "username=u"]), undefined);
  const login = ["login", "--gateway", "http://127.0.0.1:1", "--domain", "idp.example", "--id-token", CANARY];
  assert.match((await warns(t, login)) ?? "", /^--id-token-file FILE/);
  const { url } = await createTestDatabase();
  const dsn = new URL(url);
  assert.match(
    (await warns(t, ["doctor", "detect", "--db-dsn", dsn.href], ownDatabase(url))) ?? "",
    /^FLOW_DATABASE_URL/,
  );
  dsn.password = "";
  assert.equal(await warns(t, ["doctor", "detect", "--db-dsn", dsn.href]), undefined);
});
