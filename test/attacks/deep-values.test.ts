import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eachSecret } from "../../src/engine/sealing/each-secret.ts";
import { ROUTES } from "../../src/schema/routes/all.ts";
import { runFlow } from "../cli/in-process.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { startHttpServer } from "../support/servers/http-server.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startTestGateway } from "../support/service/gateway-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";
import { answerOf, type Reply } from "../support/service/server-calls.ts";

/*
 * Values with thousands of lists within each other: in bodies, in texts that are read as JSON, in what tools are answered. Every walk
 * over them would end with a fault, in the server's round with those of all executions in it.
 */

const OPERATOR = "operator-token-of-the-attacks-with-depth";
/** Of a body, of a text that is read as JSON, and of a task's result. */
const [BODY_MAX, TEXT_MAX, RESULT_MAX] = [500, 400, 420];
const MANY = 100_000;

const lists = (depth: number) => `${"[".repeat(depth)}1${"]".repeat(depth)}`;
const maps = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

const closers: (() => unknown)[] = [];
const context = { after: (close: () => unknown) => void closers.push(close) } as never;
after(async () => {
  for (const close of closers.reverse()) await close();
});

/** Answers with as many lists within each other as the address says. */
const outside = await startHttpServer((asked, response) => {
  response.writeHead(200, { "content-type": "application/json" }).end(lists(Number(asked.url.slice(1))));
});
closers.push(() => outside.close());

const head = (name: string) => `apiVersion: flow/v2
kind: Playbook
metadata: { name: ${name}, path: deep/${name} }
workload: { text: "", depth: 1 }
workflow:
`;
const PLAYBOOKS = {
  collection: `${head("collection")}  - step: each
    loop: { in: "{{ workload.text }}", iterator: item }
    tool: { kind: noop, result: { is: done } }
`,
  parsed: `${head("parsed")}  - step: start
    tool: { kind: noop }
    set: { kept: "{{ workload.text | fromjson | length }}" }
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop, result: { is: done } }
`,
  answered: `${head("answered")}  - step: ask
    tool: { kind: http, url: "${outside.origin}/{{ workload.depth }}" }
    next: { arcs: [{ step: end, when: "{{ ask.status_code == 200 }}", args: { is_text: "{{ ask.data is string }}" } }] }
  - step: end
    tool: { kind: noop, result: { is_text: "{{ is_text }}" } }
`,
  made: `${head("made")}  - step: start
    tool:
      kind: python
      input: { depth: "{{ workload.depth }}" }
      code: |
        def main(depth):
            value = 1
            for _ in range(int(depth)):
                value = [value]
            return value
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop, result: { is: done } }
`,
} as const;

let server: Serving;
let folder: string;

before(async () => {
  const { url } = await createServedDatabase();
  folder = await folderWith(
    context,
    Object.fromEntries(Object.entries(PLAYBOOKS).map(([name, content]) => [`${name}.yaml`, content])),
  );
  server = await startServe(
    context,
    folder,
    {
      ...ownDatabase(url),
      FLOW_SERVER_TOKEN: OPERATOR,
      FLOW_WORKER_TOKEN: `worker-${randomUUID()}`,
      FLOW_HTTP_ALLOW_PRIVATE: "127.0.0.0/8",
    },
    ["--role", "all"],
  );
  for (const content of Object.values(PLAYBOOKS)) await operate("/api/catalog/register", { content });
});

const operate = (path: string, body: unknown) => answerOf(server.url, OPERATOR, "POST", path, body);

async function sendText(url: string, method: string, path: string, body: string): Promise<Reply> {
  const headers = { authorization: `Bearer ${OPERATOR}`, "content-type": "application/json" };
  const response = await fetch(`${url}${path}`, { method, headers, body });
  const answer = await response.text();
  return { status: response.status, body: answer.startsWith("{") ? (JSON.parse(answer) as Reply["body"]) : {} };
}

const TOO_DEEP = /more than 500 values within each other/;
const messageOf = ({ body }: Reply) => JSON.stringify(body["error"] ?? "");

/** These look first whether there is such a link or trigger, and whose it is: what comes with another one is not read. */
const LATER = new Set(["/approve/:token", "/api/triggers/:trigger_id/backfill"]);
/** Every route that reads JSON; the payload of a result is taken as it is. */
const TAKES = ROUTES.filter(
  ({ body, path, method, bodyLimit }) =>
    (body !== undefined && bodyLimit !== "result" && !LATER.has(path)) || (method === "post" && path === "/mcp"),
);
const addressOf = (path: string) => path.replaceAll(/:\w+(\{[^}]*\})?/g, "1");

test("a body is refused beyond 500 levels, by every route that takes one, and never for what a text holds", async () => {
  assert.ok(TAKES.length > 20, `${TAKES.length} routes take JSON`);
  for (const { method, path } of TAKES) {
    const ask = (body: string) => sendText(server.url, method.toUpperCase(), addressOf(path), body);
    for (const body of [lists(BODY_MAX + 1), maps(BODY_MAX + 1), lists(MANY), "[".repeat(MANY)]) {
      const refused = await ask(body);
      assert.ok([400, 422].includes(refused.status), `${method} ${path}: ${refused.status} ${messageOf(refused)}`);
      assert.match(messageOf(refused), TOO_DEEP, `${method} ${path}`);
    }
    for (const body of [
      lists(BODY_MAX - 1),
      lists(BODY_MAX),
      maps(BODY_MAX),
      JSON.stringify({ a: lists(MANY) }),
      JSON.stringify('"[\\'.repeat(MANY)),
    ]) {
      const { status, body: answer } = await ask(body);
      assert.ok(status < 500, `${method} ${path}: ${status}`);
      assert.doesNotMatch(JSON.stringify(answer), TOO_DEEP, `${method} ${path}`);
    }
  }
});

/** In place of a status: the server has closed the connection. */
const CUT = 0;

test("64 MB of brackets are refused for their length, whether it is announced or not", async () => {
  const chunk = Buffer.alloc(1 << 20, "[");
  for (const headers of [{ "content-length": String(64 * chunk.length) }, { "transfer-encoding": "chunked" }]) {
    const status = await new Promise<number>((resolve) => {
      const options = { method: "POST", headers: { ...headers, authorization: `Bearer ${OPERATOR}` }, agent: false };
      const sending = request(`${server.url}/api/execute`, options, (response) => {
        resolve(response.statusCode ?? 0);
        sending.destroy();
      });
      // The connection may be closed before the answer to what is still on its way was read.
      sending.on("error", () => resolve(CUT));
      let left = 64;
      const more = () => {
        while (left > 0 && !sending.destroyed) {
          left -= 1;
          if (!sending.write(chunk)) return void sending.once("drain", more);
        }
        sending.end();
      };
      more();
    });
    assert.ok(status === 413 || status === CUT, String(status));
  }
  assert.equal((await fetch(`${server.url}/api/health`)).status, 200);
});

test("what is read as JSON of a query, a header or a cursor is refused or answered, never a fault", async () => {
  const deep = lists(6_000);
  const base64 = Buffer.from(deep).toString("base64url").slice(0, 12_000);
  for (const [path, headers] of [
    [`/api/results/resolve?ref=${encodeURIComponent(`{"kind":"result_ref","ref":${lists(1_500)}}`)}`, {}],
    [`/api/executions?cursor=${base64}`, {}],
    ["/mcp", { "last-event-id": base64, accept: "text/event-stream" }],
  ] as const) {
    const response = await fetch(`${server.url}${path}`, {
      headers: { authorization: `Bearer ${OPERATOR}`, ...headers },
    });
    assert.ok(response.status >= 400 && response.status < 500, `${path.slice(0, 40)}: ${response.status}`);
    await response.text();
  }
});

test("a gateway refuses such bodies too", async (t) => {
  const gateway = await startTestGateway(t, { FLOW_SERVER_TOKEN: OPERATOR, FLOW_BASE_URL: server.url });
  for (const path of ["login", "exchange", "access"]) {
    const refused = await sendText(gateway.url, "POST", `/api/auth/${path}`, lists(BODY_MAX + 1));
    assert.equal(refused.status, 422);
    assert.match(messageOf(refused), TOO_DEEP);
  }
});

interface Ran {
  status: string;
  result: unknown;
  error: { code: string; message: string } | null;
}

/** A run at the server, and one of `flow run`. */
const PLACES = {
  service: async (name: string, workload: object) =>
    (await operate("/api/execute", { path: `deep/${name}`, workload, wait_ms: 30_000 })) as unknown as Ran,
  local: async (name: string, workload: object) => {
    const args = ["run", join(folder, `${name}.yaml`), "--json", "--workload", JSON.stringify(workload)];
    const { stdout } = await runFlow(folder, args, { HOME: folder });
    return JSON.parse(stdout) as Ran;
  },
};

for (const [where, run] of Object.entries(PLACES)) {
  test(`a collection that is JSON text ends its own execution when it is too deep (${where})`, async () => {
    const ran = await run("collection", { text: lists(TEXT_MAX) });
    assert.equal(ran.status, "COMPLETED", JSON.stringify(ran.error));
    for (const depth of [TEXT_MAX + 1, ...(where === "service" ? [MANY] : [])]) {
      const deep = await run("collection", { text: lists(depth) });
      assert.equal(deep.status, "FAILED");
      assert.match(String(deep.error?.message), /text with more than 400 lists and maps within each other/);
    }
  });

  test(`fromjson of a step refuses it within its budget (${where})`, async () => {
    assert.deepEqual((await run("parsed", { text: lists(TEXT_MAX) })).result, { is: "done" });
    for (const depth of [1_001, ...(where === "service" ? [MANY] : [])]) {
      const deep = await run("parsed", { text: lists(depth) });
      assert.deepEqual([deep.status, deep.error?.code], ["FAILED", "TEMPLATE_BUDGET"], JSON.stringify(deep));
    }
  });

  test(`an answer of another server is a value up to 400 levels, and text beyond (${where})`, async () => {
    for (const [depth, is] of [
      [TEXT_MAX - 1, false],
      [TEXT_MAX, false],
      [TEXT_MAX + 1, true],
      [MANY, true],
    ] as const) {
      const { status, result, error } = await run("answered", { depth });
      assert.deepEqual([status, result], ["COMPLETED", { is_text: is }], `${depth}: ${JSON.stringify(error)}`);
    }
  });

  test(`a result that code makes is taken up to 420 levels, and fails its task beyond (${where})`, async () => {
    for (const depth of [RESULT_MAX - 1, RESULT_MAX]) {
      const { status, error } = await run("made", { depth });
      assert.equal(status, "COMPLETED", `${depth}: ${JSON.stringify(error)}`);
    }
    const { status, error } = await run("made", { depth: RESULT_MAX + 1 });
    assert.deepEqual([status, error?.code], ["FAILED", "INVALID_INPUT"]);
    assert.match(String(error?.message), /The result has more than 420 lists and maps within each other/);
    assert.equal((await run("made", { depth: MANY })).error?.code, "RESULT_NOT_JSON");
  });
}

test("a secret that is JSON text is a secret as a whole, however deep it is, and its parts up to 400 levels", () => {
  const found = (secret: string) => {
    const all: string[] = [];
    eachSecret(secret, {}, (text_) => all.push(text_) > 0);
    return all;
  };
  const holding = (depth: number) => `${"[".repeat(depth)}"inner-secret"${"]".repeat(depth)}`;
  assert.deepEqual(found(holding(TEXT_MAX)), [holding(TEXT_MAX), "inner-secret"]);
  assert.deepEqual(found(holding(30_000)), [holding(30_000)]);
});

test("the server has gone on all the while", async () => {
  const { status } = await PLACES.service("made", { depth: 1 });
  assert.equal(status, "COMPLETED");
});
