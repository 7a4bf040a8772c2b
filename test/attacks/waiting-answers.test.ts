import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Database } from "../../src/repositories/database/database.ts";
import { open } from "../repositories/service-database.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { startHttpServer } from "../support/servers/http-server.ts";
import type { Body } from "../support/service/api.ts";
import { flow, folderWith } from "../support/service/cli-process.ts";
import { startTestGateway } from "../support/service/gateway-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";
import { answerOf } from "../support/service/server-calls.ts";
import { addUser, allow, type TestUser } from "../support/service/users.ts";

/*
 * Secrets read through answers that wait for something: every one of them is asked for before its execution has ended, by everyone
 * who may ask, of a run that ends well and of one that fails. The secret comes from a credential, and another server gives it back.
 */

const OPERATOR = "operator-token-of-the-waiting-attacks-1";
const WORKER = "worker-token-of-the-waiting-attacks-222";
const SECRET = "canary-4bd1c7-that-nobody-may-read";
/** As it may be written elsewhere, too. */
const FORMS = [SECRET, Buffer.from(SECRET).toString("base64"), encodeURIComponent(SECRET), SECRET.slice(4, -4)];
const WAIT_MS = 30_000;
/** What only the worker of this test has. */
const LABEL = { canary: "waiting" };

const closers: (() => unknown)[] = [];
const context = { after: (close: () => unknown) => void closers.push(close) } as never;
after(async () => {
  for (const close of closers.reverse()) await close();
});

/** Answers with what it was sent, as the value of a field, and within an error. */
const echo = await startHttpServer((asked, response) => {
  const said = String(asked.headers["authorization"]);
  response.writeHead(asked.url.startsWith("/broken") ? 500 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify({ said, error: { message: `It broke over ${said}` } }));
});
closers.push(() => echo.close());

const playbook = (name: string, path: string) => `apiVersion: flow/v2
kind: Playbook
metadata: { name: ${name}, path: team/${name}, agent: true }
workflow:
  - step: ask
    tool: { kind: http, url: "${echo.origin}/${path}", auth: canary }
    set: { kept: "{{ ask.data.said }}" }
    next: { arcs: [{ step: next, args: { given: "{{ ask.data.said }}" } }] }
  - step: next
    tool: { kind: noop, result: { kept: "{{ kept }}", given: "Got {{ given }}" } }
`;
const HELD = `${playbook("held", "well")}    spec: { labels: { canary: waiting } }\n`;

let server: Serving;
let database: Database;
let ada: TestUser;
let folder: string;

const operate = (path: string, body: unknown) => answerOf(server.url, OPERATOR, "POST", path, body);

before(async () => {
  const { url } = await createServedDatabase();
  database = open(url);
  folder = await folderWith(context, {});
  server = await startServe(
    context,
    folder,
    {
      ...ownDatabase(url),
      ...{ FLOW_SERVER_TOKEN: OPERATOR, FLOW_WORKER_TOKEN: WORKER, FLOW_HTTP_ALLOW_PRIVATE: "127.0.0.0/8" },
    },
    ["--role", "all"],
  );
  const meta = { playbooks: ["**"] };
  await operate("/api/credentials", { name: "canary", type: "bearer", data: { token: SECRET }, meta });
  for (const content of [playbook("well", "well"), playbook("broken", "broken"), HELD])
    await operate("/api/catalog/register", { content });
  ada = await addUser(database);
  await allow(database, ada, [{ allow: "team/**", can: ["view", "execute"] }]);
});

type Headers = Record<string, string>;

async function said(path: string, headers: Headers, body?: unknown, url = server.url): Promise<string> {
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer = await response.text();
  assert.ok(response.ok, `${path}: ${response.status} ${answer}`);
  return answer;
}

/** It has an answer, which shows that something is hidden there, and nothing of the secret. */
function assertMasked(what: string, answer: string, mask: "[secret]" | "[sealed:" = "[secret]"): void {
  for (const form of FORMS) assert.ok(!answer.includes(form), `${what} shows the secret: ${answer}`);
  if (mask === "[secret]") assert.ok(!answer.includes("[sealed:"), `${what} shows sealed text: ${answer}`);
  assert.ok(answer.includes(mask), `${what} has nothing to hide: ${answer}`);
}

const operator = { authorization: `Bearer ${OPERATOR}` };

for (const [name, status] of [
  ["well", "COMPLETED"],
  ["broken", "FAILED"],
] as const) {
  test(`a start that waits, and a result that is waited for, are masked for everyone (${status})`, async (t) => {
    const gateway = await startTestGateway(t, { FLOW_SERVER_TOKEN: OPERATOR, FLOW_BASE_URL: server.url });
    const callers: [string, string, string, Headers][] = [
      ["the operator", server.url, "/api", operator],
      ["a user", server.url, "/api", { ...operator, "x-flow-session": ada.tokenSha256 }],
      ["a user behind a gateway", gateway.url, "/flow", { authorization: `Bearer ${ada.token}` }],
    ];
    for (const [who, url, prefix, headers] of callers) {
      const body = { path: `team/${name}`, resource_kind: "agent", wait_ms: WAIT_MS };
      const started = await said(`${prefix}/execute`, headers, body, url);
      assert.equal((JSON.parse(started) as Body)["status"], status);
      if (status === "COMPLETED") assertMasked(`${who}: execute`, started);
      for (const form of FORMS) assert.ok(!started.includes(form), started);

      const { execution_id: id } = JSON.parse(
        await said(`${prefix}/execute`, headers, { path: `team/${name}`, resource_kind: "agent" }, url),
      ) as Body;
      const result = `${prefix}/executions/${String(id)}/result?wait_ms=${WAIT_MS}`;
      const [whole, step, sealed, stream] = await Promise.all([
        said(result, headers, undefined, url),
        said(`${result}&step=ask`, headers, undefined, url),
        said(`${result}&step=ask&sealed=true`, headers, undefined, url),
        said(`${prefix}/executions/${String(id)}/stream`, headers, undefined, url),
      ]);
      for (const form of FORMS) assert.ok(!whole.includes(form), whole);
      if (status === "COMPLETED") assertMasked(`${who}: result`, whole);
      assertMasked(`${who}: the step's result`, step);
      // Playbooks read results with what is sealed in them; no one who waits for one can open it.
      assertMasked(`${who}: what is stored`, sealed, who === "the operator" ? "[sealed:" : "[secret]");
      assertMasked(`${who}: the stream`, stream);
    }
  });

  test(`the answer to a tool's call, and the rest of one, are masked (${status})`, async () => {
    const headers = {
      ...{ ...operator, "x-flow-session": ada.tokenSha256, accept: "application/json, text/event-stream" },
      ...{ "mcp-protocol-version": "2025-11-25", "mcp-session-id": randomUUID() },
    };
    const params = { name: `team__${name}`, arguments: {}, _meta: { progressToken: 1 } };
    const answer = await said("/mcp", headers, { jsonrpc: "2.0", id: 1, method: "tools/call", params });
    for (const form of FORMS) assert.ok(!answer.includes(form), answer);
    if (status === "COMPLETED") assertMasked("tools/call", answer);
    const point = Buffer.from(JSON.stringify([1, 1, 0])).toString("base64url");
    const rest = await said("/mcp", { ...headers, "last-event-id": point });
    for (const form of FORMS) assert.ok(!rest.includes(form), rest);
    if (status === "COMPLETED") assertMasked("the rest of it", rest);
  });
}

test("a claim that waits for a command carries sealed text", async () => {
  const asWorker = async (path: string, body: unknown, headers: Headers = {}) =>
    JSON.parse(await said(path, { authorization: `Bearer ${WORKER}`, ...headers }, body)) as Body;
  const name = "mallory";
  const { worker_secret: own } = await asWorker("/api/worker/pool/register", { name, capacity: 4, labels: LABEL });
  const worker = { "x-flow-worker": String(own) };
  // The step before is of a kind that this worker does not run: the server's own does.
  const claim = { worker: name, limit: 1, wait_ms: 10_000, labels: LABEL, kinds: ["noop"] };
  const claiming = said("/api/commands/claim", { authorization: `Bearer ${WORKER}`, ...worker }, claim);
  const { execution_id: id } = await operate("/api/execute", { path: "team/held", resource_kind: "agent" });
  const answer = await claiming;
  const { commands } = JSON.parse(answer) as { commands: Body[] };
  assert.deepEqual([commands[0]?.["execution_id"], commands[0]?.["step"]], [id, "next"]);
  assertMasked("a claim", answer, "[sealed:");
});

test("a local run prints no secret while it waits, nor at its end", async () => {
  await writeFile(join(folder, "well.yaml"), playbook("well", "well"));
  const settings = {
    ...{ HOME: folder, FLOW_HTTP_ALLOW_PRIVATE: "all" },
    FLOW_CREDENTIAL_CANARY: JSON.stringify({ type: "bearer", data: { token: SECRET } }),
  };
  for (const more of [["--json"], ["--verbose"]]) {
    const { stdout, stderr, code } = await flow(folder, ["run", "well.yaml", ...more], settings);
    assert.equal(code, 0, stderr);
    assertMasked(`flow run ${more.join(" ")}`, stdout + stderr);
  }
});
