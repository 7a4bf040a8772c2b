import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ROUTES } from "../../../src/schema/routes/all.ts";
import { storedResults } from "../../support/database/stored-results.ts";
import { type Body, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { claimOf, ONE_STEP } from "../../support/service/api-work.ts";
import { answerOf, testGateway } from "../../support/service/gateway-app.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

/*
 * Stored results by every form of a reference, every role, every route that takes one. What the operator is given for the same
 * address says whose result it is; so no form can be decided on as something else than what the handler reads.
 */

const api = await openApi();
const { work, claimed, put, refOf } = storedResults(api);

/** Catalog paths, each with a result of its own. */
const PATHS = ["team/a", "other/a", "api_integration/idp/login"] as const;
const refs = new Map<string, string>();
/** What they may view. */
const users: { who: string; user: TestUser; views: readonly string[] }[] = [];

before(async () => {
  for (const path of PATHS) {
    await work.register(path, ONE_STEP);
    const command = await claimed(path);
    const { status } = await put(command, JSON.stringify(payloadOf(path)));
    assert.equal(status, 200);
    refs.set(path, refOf(command));
    // The record of a manifest, and of one whose parts are others'.
    const parts = PATHS.map((other) => ({ ref: refs.get(other) ?? "" }));
    const manifest = {
      kind: "manifest",
      strategy: "append",
      parts,
      total_parts: 1,
      total_bytes: 1,
      of: payloadOf(path),
    };
    await putAs(command, `${refOf(command)}/manifest`, JSON.stringify(manifest));
    await putAs(command, `${refOf(command)}-sealed`, JSON.stringify([payloadOf(path), "[sealed:k1:AAAA]"]));
  }
  const [ours, others, system] = PATHS;
  for (const [who, roles, views] of [
    ["admin", ["admin"], PATHS],
    ["developer", ["developer"], [ours, others]],
    ["analyst", ["analyst"], [ours, others]],
    ["viewer", ["viewer"], [ours, others]],
    ["no role", [], []],
  ] as const) {
    users.push({ who, user: await addUser(api.database, { roles }), views });
  }
  for (const [who, rows, views] of [
    ["a member of a team", [{ allow: "team/**", can: ["view"] }], [ours]],
    ["one who may do all but view", [{ allow: "**", can: ["execute", "modify"] }], []],
    ["one who is denied a team", [{ allow: "**", deny: "team/**", can: ["view"] }], [others, system]],
    ["one with a path of the system", [{ path: system, can: ["view"] }], [system]],
  ] as const) {
    const user = await addUser(api.database);
    await allow(api.database, user, rows);
    users.push({ who, user, views });
  }
});

function payloadOf(path: string): string {
  return `stored by ${path}`;
}

async function putAs({ command_id, attempt }: { command_id: string; attempt: number }, ref: string, body: string) {
  const query = new URLSearchParams({ ref, worker: "w", command_id, attempt: String(attempt) });
  const response = await api.open.request(`/api/results?${query}`, { method: "PUT", body });
  assert.equal(response.status, 200, await response.text());
}

/** Ways to write one reference as the query of a call, and ways to hide one behind another. */
function formsOf(ref: string, decoy: string): Record<string, string> {
  const query = (value: string) => new URLSearchParams({ ref: value }).toString();
  const json = (value: unknown) => query(JSON.stringify(value));
  const about = {
    store: "disk",
    scope: "permanent",
    meta: { content_type: "application/json", bytes: 1, sha256: "0" },
    extracted: { ref: decoy },
    preview: { truncated: false, bytes: 1, sample: decoy },
  };
  const escaped = [...ref].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
  return {
    "as it is": query(ref),
    "not encoded": `ref=${ref}`,
    "every character encoded": `ref=${[...ref].map((char) => `%${char.charCodeAt(0).toString(16)}`).join("")}`,
    "a name that is encoded": `%72%65f=${encodeURIComponent(ref)}`,
    "a manifest": query(`${ref}/manifest`),
    "a sealed one": query(`${ref}-sealed`),
    "a ResultRef": json({ kind: "result_ref", ref }),
    "a whole ResultRef": json({ kind: "result_ref", ref, ...about }),
    "a whole ResultRef, the other way round": json({ ...about, ref, kind: "result_ref" }),
    "an earlier ResultRef": json({ kind: "temp_ref", ref }),
    "a ResultRef of a manifest": json({ kind: "result_ref", ref: `${ref}/manifest` }),
    "a ResultRef with spaces": query(JSON.stringify({ kind: "result_ref", ref }, null, 2)),
    "a ResultRef with escapes": query(`{"kind":"result_\\u0072ef","ref":"${escaped}"}`),
    "a ResultRef that names two": query(`{"kind":"result_ref","ref":"${decoy}","ref":"${ref}"}`),
    "a ResultRef of two kinds": query(`{"kind":"x","ref":"${ref}","kind":"result_ref"}`),
    "a ResultRef before another reference": `${json({ kind: "result_ref", ref })}&${query(decoy)}`,
    "a reference before another one": `${query(ref)}&${query(decoy)}`,
    "a reference behind nothing": `ref=&${query(ref)}`,
    "beside an execution": `${query(ref)}&execution_id=${executionIn(decoy)}`,
    "asked for sealed": `${json({ kind: "result_ref", ref })}&sealed=true`,
    // None of these is read as a reference; a form that is, one day, is decided on like the others.
    "a kind that is none": json({ kind: "other_ref", ref }),
    "a ResultRef in a list": json([{ kind: "result_ref", ref }]),
    "a ResultRef in a ResultRef": json({ kind: "result_ref", ref: JSON.stringify({ kind: "result_ref", ref }) }),
    "a ResultRef behind a space": query(` ${JSON.stringify({ kind: "result_ref", ref })}`),
    "JSON that ends early": query(JSON.stringify({ kind: "result_ref", ref }).slice(0, -1)),
    "a text in JSON": json(ref),
    "upper case": query(ref.toUpperCase()),
    "no scheme": query(ref.slice("noetl://".length)),
    "an id with a zero": query(ref.replace("execution/", "execution/0")),
    "another segment": query(ref.replace("/step/", "/../step/")),
    "no reference": "",
    "an empty one": "ref=",
    nonsense: query("nonsense"),
  };
}

function executionIn(ref: string): string {
  return /execution\/(\d+)/.exec(ref)?.[1] ?? "";
}

const WHOLE = { method: "GET", headers: {} };
/** Other ways to ask for a payload. */
const OTHERWISE = [
  ...["bytes=0-9", "bytes=-9", "bytes=999999-", "lines=1"].flatMap((range) => [
    { method: "GET", headers: { range } },
    { method: "HEAD", headers: { range } },
  ]),
  { method: "HEAD", headers: {} },
];

/** Addresses of every route that takes a reference, and of those that a gateway lets through. */
function addresses(): { base: string; gateway: boolean }[] {
  const taking = ROUTES.filter(({ method, query }) => method === "get" && query?.entries["ref"] !== undefined);
  return taking.flatMap(({ path }) => [
    { base: path, gateway: false },
    ...(path.startsWith("/api/") ? [{ base: path.replace("/api/", "/flow/"), gateway: true }] : []),
  ]);
}

const gateway = testGateway({
  async answer({ method, path, headers }) {
    const operator = { ...headers, authorization: `Bearer ${TOKENS.operator}` };
    const response = await api.guarded.request(path, { method, headers: operator });
    return answerOf(response.status, Object.fromEntries(response.headers), await response.text());
  },
});

async function ask(caller: TestUser | "operator", address: string, through: boolean, init: RequestInit) {
  const given = init.headers as Record<string, string>;
  if (through && caller !== "operator") {
    const headers = { ...given, authorization: `Bearer ${caller.token}` };
    return await told(gateway.app.request(address, { ...init, headers }));
  }
  const session = caller === "operator" ? {} : { "x-flow-session": caller.tokenSha256 };
  const headers = { ...given, authorization: `Bearer ${TOKENS.operator}`, ...session };
  return await told(api.guarded.request(address.replace(/^\/flow\//, "/api/"), { ...init, headers }));
}

async function told(asked: Response | Promise<Response>) {
  const response = await asked;
  const [etag, range] = ["etag", "content-range"].map((name) => response.headers.get(name));
  return { status: response.status, text: await response.text(), etag, range };
}

test("the routes that take a reference are known, the gateway's among them", () => {
  assert.deepEqual(
    addresses().map(({ base }) => base),
    ["/results/resolve", "/api/results/resolve", "/flow/results/resolve"],
  );
});

test("whatever form a reference has, who may not view its execution is given nothing of it", async () => {
  let given = 0;
  for (const [at, path] of PATHS.entries()) {
    const decoy = refs.get(PATHS[(at + 1) % PATHS.length] ?? "") ?? "";
    for (const [turn, [form, query]] of Object.entries(formsOf(refs.get(path) ?? "", decoy)).entries()) {
      for (const [place, { base, gateway: through }] of addresses().entries()) {
        const address = `${base}?${query}`;
        const whole = await ask("operator", address, false, WHOLE);
        const about = whole.status === 200 ? PATHS.find((one) => whole.text.includes(payloadOf(one))) : undefined;
        // Through the gateway, and at one of the other addresses in turn, whole; at the one that is left in one other way, in turn. All
        // ways at all addresses would be 25,000 calls.
        const isOther = !through && (turn + at + place) % 2 === 0;
        for (const init of [isOther ? (OTHERWISE[(turn + at) % OTHERWISE.length] ?? WHOLE) : WHOLE]) {
          const operator = await ask("operator", address, false, init);
          for (const { who, user, views } of users) {
            const answer = await ask(user, address, through, init);
            const what = `${who}: ${JSON.stringify(init)} ${base}, ${form} of ${path}: ${answer.status} ${answer.text}`;
            if (about !== undefined && views.includes(about)) {
              assert.equal(answer.status, operator.status, what);
              if (operator.status < 300) assert.equal(answer.text, operator.text, what);
              given += 1;
              continue;
            }
            // Where nothing is there, who may not view the execution is not told even that.
            assert.ok((about === undefined ? [403, 404, 422] : [403]).includes(answer.status), what);
            assert.doesNotMatch(answer.text, /stored by/, what);
            assert.deepEqual([answer.etag, answer.range], [null, null], what);
          }
        }
      }
    }
  }
  assert.ok(given > 500, `${given} calls were answered with a result`);
});

test("a worker that reads in the name of a user is given what they may view, in whatever form it asks", async () => {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "team/**", can: ["execute", "view"] }]);
  const session = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const started = await api.guarded.request("/api/execute", posted({ path: "team/a" }, session));
  const { execution_id } = (await started.json()) as Body;
  const headers = await claimOf(api, String(execution_id));
  const seen = new Map<string, number>();
  for (const path of PATHS) {
    for (const [form, query] of Object.entries(formsOf(refs.get(path) ?? "", refs.get("team/a") ?? ""))) {
      for (const base of ["/results/resolve", "/api/results/resolve"]) {
        const address = `${base}?execution_id=${String(execution_id)}&${query}`;
        const { status, text } = await told(api.guarded.request(address, { headers }));
        const about = PATHS.find((one) => text.includes(payloadOf(one)));
        assert.equal(status === 200, about !== undefined, `${form} of ${path}: ${status} ${text}`);
        if (about !== undefined) seen.set(about, (seen.get(about) ?? 0) + 1);
      }
    }
  }
  assert.deepEqual([...seen.keys()], ["team/a"]);
});
