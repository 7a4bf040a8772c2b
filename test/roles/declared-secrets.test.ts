import assert from "node:assert/strict";
import { test } from "node:test";
import { runFlow } from "../cli/in-process.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

/* What a playbook declares as a secret, with a real server, worker and command line: it is used, and is in nothing that people keep. */

const SECRET = "declared-canary-8813";
const PLAYBOOK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: told, path: told }
inputs:
  password: { type: string, secret: true, required: true }
  user: { type: string, default: ann }
workflow:
  - step: use
    tool:
      kind: python
      args: { password: "{{ workload.password }}", user: "{{ workload.user }}" }
      code: |
        import sys
        print("logs in as", user, "with", password, flush=True)
        print("again:", password, file=sys.stderr, flush=True)
        result = {"length": len(password), "same": password}
    next: { arcs: [{ step: fail }] }
  - step: fail
    tool:
      kind: python
      args: { password: "{{ use.same }}" }
      code: |
        print("still", password)
        raise ValueError("refused " + password)
`;

test("a declared secret is used by tasks, and is in no log line, error, event, export or list", async (t) => {
  const folder = await folderWith(t, { "told.yaml": PLAYBOOK });
  const environment = ownDatabase((await createServedDatabase()).url);
  const serving = await startServe(t, folder, environment, ["--role", "all"]);
  const run = (...args: string[]) => runFlow(folder, args, { FLOW_SERVER_URL: serving.url });
  const ran = await run("run", "told.yaml", "--set", `password=${SECRET}`, "--json");
  assert.equal(ran.code, 1, ran.stderr);
  const outputs = new Map([["run", ran.stdout + ran.stderr]]);
  const listed = await fetch(`${serving.url}/api/executions`);
  const { executions } = (await listed.json()) as { executions: { execution_id: string }[] };
  const id = executions[0]?.execution_id ?? "";
  for (const args of [
    ["export", id],
    ["logs", id],
    ["events", id],
    ["events", id, "--json"],
    ["status", id, "--json"],
    ["executions", "--json"],
  ]) {
    const { stdout, stderr } = await run(...args);
    assert.ok(stdout.length > 0, `${args.join(" ")}: ${stderr}`);
    outputs.set(args.join(" "), stdout + stderr);
  }
  for (const path of ["", "/events?limit=500", "/rendered", "/state"]) {
    outputs.set(path, await (await fetch(`${serving.url}/api/executions/${id}${path}`)).text());
  }
  // It did its work, and what was written stands there without it.
  assert.match(outputs.get(`logs ${id}`) ?? "", /logs in as ann with/);
  assert.match(outputs.get(`export ${id}`) ?? "", /"length":20/);
  for (const [what, text] of outputs)
    assert.ok(!text.includes(SECRET), `${what} has the secret: ${text.slice(0, 2_000)}`);
});
