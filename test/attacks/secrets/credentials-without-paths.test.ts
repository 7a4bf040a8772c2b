import assert from "node:assert/strict";
import { test } from "node:test";
import { createServedDatabase } from "../../support/database/postgres.ts";
import { ownDatabase } from "../../support/engine/key-ring.ts";
import { type Body, playbook } from "../../support/service/api.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import { startServe } from "../../support/service/serve.ts";
import { answerOf, sendTo } from "../../support/service/server-calls.ts";

/* What a playbook of any author gets of a credential whose owner did not say which playbooks may use it. */

const OPERATOR = "operator-token-of-the-attacks-1";
const WORKER = "worker-token-of-the-attacks-22";
const SECRET = "canary-of-the-attacks";
const WAIT_MS = 10_000;

test("a credential without paths is for no playbook of a new installation, until its owner says for which", async (t) => {
  const { url } = await createServedDatabase();
  const tokens = { FLOW_SERVER_TOKEN: OPERATOR, FLOW_WORKER_TOKEN: WORKER };
  const given = { FLOW_CREDENTIAL_GIVEN: JSON.stringify({ type: "bearer", data: { token: SECRET } }) };
  const folder = await folderWith(t, {});
  const settings = { ...ownDatabase(url), ...tokens, ...given, FLOW_PURE_STEPS: "workers" };
  const restricted = await startServe(t, folder, settings);
  const operate = (method: string, path: string, body?: unknown) =>
    answerOf(restricted.url, OPERATOR, method, path, body);
  for (const path of ["team/one", "other/one"]) {
    await operate("POST", "/api/catalog/register", { content: playbook(path) });
  }
  const stored = { type: "custom", data: { password: SECRET } };
  assert.deepEqual((await operate("POST", "/api/credentials", { name: "plain", ...stored }))["playbooks"], []);
  const team = { name: "team", ...stored, meta: { playbooks: ["team/**"], owner: "t" } };
  assert.deepEqual((await operate("POST", "/api/credentials", team))["playbooks"], ["team/**"]);

  const own = await registered(restricted.url);
  const mine = await claimedBy(restricted.url, own, "team/one");
  const foreign = await claimedBy(restricted.url, own, "other/one");
  const read = async (server: string, claim: string, name: string) => {
    const headers = { ...own, "x-flow-claim": claim };
    const { status, body } = await sendTo(server, WORKER, "GET", dataOf(name), undefined, headers);
    if (status !== 200) assert.ok(!JSON.stringify(body).includes(SECRET));
    return { status, message: String(body["error"]) };
  };
  for (const name of ["plain", "given"]) {
    const { status, message } = await read(restricted.url, mine, name);
    assert.equal(status, 403, name);
    assert.match(message, new RegExp(`'${name}' .* no playbook yet.*flow credentials paths ${name} team/one`));
  }
  assert.equal((await read(restricted.url, mine, "team")).status, 200);
  assert.equal((await read(restricted.url, foreign, "team")).status, 403);

  const said = await operate("PUT", "/api/credentials/team/playbooks", { playbooks: ["other/**"] });
  assert.deepEqual([said["playbooks"], said["meta"]], [["other/**"], { playbooks: ["other/**"], owner: "t" }]);
  assert.equal((await read(restricted.url, mine, "team")).status, 403);
  assert.equal((await read(restricted.url, foreign, "team")).status, 200);
  for (const token of [WORKER, "wrong-token-of-the-attacks-1234567"]) {
    const body = { playbooks: ["**"] };
    const { status } = await sendTo(restricted.url, token, "PUT", "/api/credentials/plain/playbooks", body, own);
    assert.ok(status === 401 || status === 403, String(status));
  }
  // The data are those from before: they were not said again.
  assert.deepEqual((await operate("GET", dataOf("team")))["data"], { password: SECRET });

  // The setting overrides what the installation began with.
  const open = await startServe(t, folder, { ...settings, FLOW_CREDENTIALS_DEFAULT: "open" });
  assert.deepEqual((await answerOf(open.url, OPERATOR, "GET", "/api/credentials/plain"))["playbooks"], ["**"]);
  assert.equal((await read(open.url, mine, "plain")).status, 200);
  assert.equal((await read(open.url, mine, "team")).status, 403);
});

const dataOf = (name: string) => `/api/credentials/${name}?include_data=true`;

async function registered(url: string): Promise<Record<string, string>> {
  const body = await answerOf(url, WORKER, "POST", "/api/worker/pool/register", { name: "w", capacity: 4 });
  return { "x-flow-worker": String(body["worker_secret"]) };
}

/** The secret of the claim of such a playbook's first command. */
async function claimedBy(url: string, own: Record<string, string>, path: string): Promise<string> {
  await answerOf(url, OPERATOR, "POST", "/api/execute", { path });
  const ask = { worker: "w", limit: 1, wait_ms: WAIT_MS };
  const { body } = await sendTo(url, WORKER, "POST", "/api/commands/claim", ask, own);
  const [command] = body["commands"] as (Body & { claim_secret: string })[];
  assert.ok(command !== undefined);
  return command.claim_secret;
}
