import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createServedDatabase } from "../support/database/postgres.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";
import { answerOf } from "../support/service/server-calls.ts";

/*
 * Code that looks for the service's secrets in the environments and command lines of all processes, where no sandbox keeps it
 * from them.
 */

const OPERATOR = `canary-of-the-operator-${randomUUID()}`;
const WORKER = `canary-of-the-worker-${randomUUID()}`;
const PROVIDER = `canary-of-a-provider-${randomUUID()}`;

/** Finds texts, given in reverse, in what the system shows of every process; and a variable that is no secret, as a proof. */
const SEARCH = `apiVersion: flow/v2
kind: Playbook
metadata: {name: search, path: search}
workload: {wanted: [], plain: ""}
workflow:
  - step: look
    tool:
      kind: python
      input: {wanted: "{{ workload.wanted }}", plain: "{{ workload.plain }}"}
      code: |
        import glob
        found, seen = [], 0
        for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
            try:
                text = open(path, "rb").read().decode("latin1")
            except OSError:
                continue
            seen += "FLOW_PLAIN=" + plain in text
            found += [path + " " + word[::-1] for word in wanted if word[::-1] in text]
        result = {"found": found, "seen": seen, "inherited": [name for name in os.environ if "TOKEN" in name]}
`;

async function search(context: TestContext, settings: NodeJS.ProcessEnv, folder: string): Promise<unknown> {
  const { url: databaseUrl } = await createServedDatabase();
  // Random: tests that run beside this one have processes too.
  const keys = `k1:${randomBytes(32).toString("base64")}`;
  const plain = randomUUID();
  const environment = {
    FLOW_DATABASE_URL: databaseUrl,
    FLOW_ENCRYPTION_KEYS: keys,
    FLOW_CREDENTIAL_PROVIDER: JSON.stringify({ type: "bearer", data: { token: PROVIDER } }),
    FLOW_TASK_ISOLATION: "none",
    FLOW_PLAIN: plain,
    ...settings,
  };
  const { url } = await startServe(context, folder, environment, ["--role", "all"]);
  const call = (path: string, body?: unknown) =>
    answerOf(url, OPERATOR, body === undefined ? "GET" : "POST", path, body);
  await call("/api/catalog/register", { content: SEARCH });
  const secrets = [OPERATOR, WORKER, PROVIDER, keys, new URL(databaseUrl).href];
  const wanted = secrets.map((text) => [...text].reverse().join(""));
  const { execution_id: id } = await call("/api/execute", { path: "search", workload: { wanted, plain } });
  const { status, result, error } = await call(`/api/executions/${id}/result?wait_ms=30000`);
  assert.equal(status, "COMPLETED", JSON.stringify(error));
  return result;
}

test("no secret that a service was started with stands in what the system shows of its processes", async (t) => {
  const folder = await folderWith(t, {});
  const result = await search(t, { FLOW_SERVER_TOKEN: OPERATOR, FLOW_WORKER_TOKEN: WORKER }, folder);
  assert.deepEqual(result, { found: [], seen: 2, inherited: [] }, "server and worker are seen, their secrets are not");
});

test("secrets come from files too, for the server and for its worker", async (t) => {
  const folder = await folderWith(t, {});
  await writeFile(join(folder, "operator"), `${OPERATOR}\n`);
  await writeFile(join(folder, "worker"), WORKER);
  const files = { FLOW_SERVER_TOKEN_FILE: join(folder, "operator"), FLOW_WORKER_TOKEN_FILE: join(folder, "worker") };
  assert.deepEqual(await search(t, files, folder), { found: [], seen: 2, inherited: [] });
});
