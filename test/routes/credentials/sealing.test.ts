import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createSealer } from "../../../src/platform/crypto/sealing.ts";
import { maskedParts } from "../../../src/routes/http/masked-json.ts";
import type { Sealer } from "../../../src/schema/words/sealed.ts";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { type Claimed, claimOf, TWO_STEPS, workWith } from "../../support/service/api-work.ts";
import { addUser } from "../../support/service/users.ts";

const api = await openApi();
const work = workWith(api);

before(() => work.register("two", TWO_STEPS));

interface Key {
  root_execution_id: string;
  keys: { id: string; key: string }[];
}

async function keyOf(executionId: string): Promise<Key> {
  return (await work.get(`/api/executions/${executionId}/sealing-key`)).body as unknown as Key;
}

function sealerWith({ keys }: Key): Sealer {
  const [first, ...rest] = keys.map(({ id, key }) => ({ id, key: Buffer.from(key, "base64") }));
  assert.ok(first);
  return createSealer([first, ...rest]);
}

async function claimedOf(executionId: string): Promise<Claimed> {
  for (;;) {
    const found = (await work.claim("w", 100)).find(({ execution_id }) => execution_id === executionId);
    if (found !== undefined) return found;
  }
}

test("only operators, and workers in the name of a claim, get the keys of a tree; each read is recorded in the audit log", async () => {
  const id = await work.execute("two");
  const path = `/api/executions/${id}/sealing-key`;
  const asked = async (token?: string, more: Record<string, string> = {}) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}`, ...more };
    return (await api.guarded.request(path, { headers })).status;
  };
  assert.deepEqual([await asked(), await asked("wrong"), await asked(TOKENS.worker)], [401, 401, 403]);
  assert.deepEqual([await asked(TOKENS.worker, await claimOf(api, id)), await asked(TOKENS.operator)], [200, 200]);
  const rows = await api.database.sql<{ actor: string; result: string }[]>`
    select actor_kind as actor, result from auth.audit_log where action = 'sealing.key' and resource = ${`execution/${id}`}
    and result = 'allow' order by audit_id`;
  assert.deepEqual(
    rows.map(({ actor }) => actor),
    ["worker", "operator"],
  );
  const { headers } = await work.get(path);
  assert.equal(headers.get("cache-control"), "no-store");
});

test("a child has its root's keys, another tree has others; an unknown execution has none", async () => {
  const root = await work.execute("two");
  const child = await work.execute("two", { parent_execution_id: root, parent_step: "start" });
  const other = await work.execute("two");
  const key = await keyOf(root);
  assert.equal(key.root_execution_id, root);
  assert.equal(Buffer.from(key.keys[0]?.key ?? "", "base64").length, 32);
  assert.deepEqual(await keyOf(child), key);
  assert.notDeepEqual((await keyOf(other)).keys, key.keys);
  assert.equal((await work.get("/api/executions/1/sealing-key")).status, 404);
  assert.equal((await work.get("/api/executions/x/sealing-key")).status, 404);
});

test("people see [secret] wherever a value is shown, workers get what is stored", async () => {
  const id = await work.execute("two");
  const { seal } = sealerWith(await keyOf(id));
  const sealed = seal("hunter22");
  for (const step of ["start", "end"]) {
    const command = await claimedOf(id);
    assert.equal(command.step, step);
    assert.equal((await work.finish("w", command, { token: `Bearer ${sealed}` })).status, 202);
  }
  await work.runToEnd(id);
  const paths = [
    `/api/executions/${id}`,
    `/api/executions/${id}/events?limit=500`,
    `/api/executions/${id}/result`,
    `/api/executions/${id}/result?step=start&sealed=false`,
    `/api/executions/${id}/stream`,
  ];
  for (const path of paths) {
    const response = await api.open.request(path);
    const text = await response.text();
    assert.match(text, /"Bearer \[secret\]"/, path);
    assert.doesNotMatch(text, /\[sealed:/, path);
    assert.match(response.headers.get("content-type") ?? "", /application\/json|text\/event-stream/);
  }
  const { body } = await work.get(`/api/executions/${id}/result?sealed=true`);
  assert.deepEqual(body["result"], { ...(body["result"] as Body), value: { token: `Bearer ${sealed}` } });
});

async function stored(command: Claimed, json: string): Promise<string> {
  const { execution_id, command_id, attempt } = command;
  const ref = `noetl://execution/${execution_id}/step/start/task/t/run/${Math.random().toString(36).slice(2)}`;
  const query = new URLSearchParams({ ref, worker: "w", command_id, attempt: String(attempt) });
  const response = await api.open.request(`/api/results?${query}`, { method: "PUT", body: json });
  assert.equal(response.status, 200, await response.text());
  return `/results/resolve?${new URLSearchParams({ ref })}`;
}

test("a stored result is shown with [secret] in it, short or long, and is given to workers byte for byte", async () => {
  const id = await work.execute("two");
  const { seal } = sealerWith(await keyOf(id));
  const command = await claimedOf(id);
  for (const count of [1, 40_000]) {
    const rows = Array.from({ length: count }, (_, index) => ({ index, token: seal(`secret ${index}`), end: "é" }));
    const json = JSON.stringify(rows);
    const path = await stored(command, json);
    const shown = await api.open.request(path, { headers: { range: "bytes=10-20" } });
    assert.equal(shown.status, 200, "a part of what is shown is no part of what is stored");
    assert.equal(shown.headers.get("content-length"), null);
    assert.equal(shown.headers.get("etag"), null);
    const masked = rows.map(({ index, end }) => ({ index, token: "[secret]", end }));
    assert.equal(await shown.text(), JSON.stringify(masked));
    const asStored = await api.open.request(`${path}&sealed=true`);
    assert.equal(await asStored.text(), json);
    assert.ok(asStored.headers.get("etag"));
  }
});

test("a sensitive result is opened for who asks for it, what credentials gave stays masked, and it is audited", async () => {
  const id = await work.execute("two");
  const { seal, sealResult } = sealerWith(await keyOf(id));
  const command = await claimedOf(id);
  const path = await stored(
    command,
    JSON.stringify(sealResult(JSON.stringify({ name: "Ada", token: seal("hunter22") }))),
  );
  assert.deepEqual(await (await api.open.request(path)).json(), { name: "Ada", token: "[secret]" });
  const [row] = await api.database.sql<{ count: number }[]>`
    select count(*)::int as count from auth.audit_log where action = 'result.read' and resource = ${`execution/${id}`}`;
  assert.equal(row?.count, 1);
  assert.match(await (await api.open.request(`${path}&sealed=true`)).text(), /^"\[sealed:k1:[\w-]+\]"$/);
});

test("no user is shown a sensitive result, also not as it is stored", async () => {
  const id = await work.execute("two");
  const { sealResult } = sealerWith(await keyOf(id));
  const path = await stored(await claimedOf(id), JSON.stringify(sealResult(JSON.stringify({ name: "Ada" }))));
  const headers = { "x-flow-session": (await addUser(api.database, { roles: ["admin"] })).tokenSha256 };
  for (const address of [path, `${path}&sealed=true`]) {
    const response = await api.open.request(address, { headers });
    assert.deepEqual([response.status, await response.json()], [200, "[secret]"]);
  }
});

test("a payload of another tree, or one that only looks sealed, is masked and no error", async () => {
  const id = await work.execute("two");
  const other = sealerWith(await keyOf(await work.execute("two")));
  const command = await claimedOf(id);
  for (const text of [other.sealResult('{"name":"Ada"}'), other.seal("x"), "[sealed:k1:AAAA]", "[sealed:"]) {
    const response = await api.open.request(await stored(command, JSON.stringify(text)));
    assert.equal(response.status, 200);
    assert.match(await response.text(), /^"\[(secret\]?|sealed:)"?/);
  }
});

test("a payload is masked as it passes, wherever its parts end", async () => {
  const sealed = createSealer([{ id: "k1", key: Buffer.alloc(32, 1) }]).seal("hunter22");
  const text = `{"a":"x ${sealed} y","b":["${sealed}${sealed}"],"c":"[sealed","d":"[seal ed:","e":"[sealed:k1:AA"}`;
  const wanted = '{"a":"x [secret] y","b":["[secret][secret]"],"c":"[sealed","d":"[seal ed:","e":"[secret]"}';
  const masked = async (cuts: readonly number[]) => {
    const all: Uint8Array[] = [];
    const parts = (async function* () {
      let last = 0;
      for (const cut of [...cuts, text.length]) {
        yield Buffer.from(text.slice(last, cut));
        last = cut;
      }
    })();
    for await (const part of maskedParts(parts)) all.push(part);
    return Buffer.concat(all).toString();
  };
  assert.equal(await masked([]), wanted);
  for (let cut = 1; cut < text.length; cut += 1) assert.equal(await masked([cut]), wanted, String(cut));
  assert.equal(await masked(Array.from({ length: text.length - 1 }, (_, index) => index + 1)), wanted, "byte by byte");
});
