import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { after, before, test } from "node:test";
import { open } from "../../repositories/service-database.ts";
import { createServedDatabase } from "../../support/database/postgres.ts";
import { storedResults } from "../../support/database/stored-results.ts";
import { ownDatabase } from "../../support/engine/key-ring.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import { type Serving, startServe } from "../../support/service/serve.ts";
import { type Attacked, type Attacker, createAttacked, OURS, PATHS, WHO } from "../support/attacked.ts";
import { type Call, callsOf, canaryOf, FOR_USERS, mayLose } from "../support/inputs.ts";
import { sampleOf } from "../support/sample.ts";

/*
 * The inputs of all routes as a browser's program sends them: to a gateway in a process of its own, which asks a server in another,
 * with addresses as they stand, which no library has put in order before. Of the forms a part, in each run another (support/sample.ts); it is
 * smaller than every-input's, which tries the routes: what a gateway does with an address and a session is the same for all of them.
 */

const OPERATOR = "operator-token-of-the-attacks-1";
/** A call costs ten times as much as in this process. */
const SIZE = { share: 1 / 24, allPlain: false };

/** A server runs playbooks of the system itself: none can be claimed to store a result. */
const GIVEN = PATHS.filter((path) => !path.startsWith("api_integration/"));

const atEnd: (() => unknown)[] = [];
const agent = new Agent({ keepAlive: true, maxSockets: 8 });
let gateway: Serving;
let attacked: Attacked;

before(async () => {
  const t = { after: (end: () => unknown) => void atEnd.push(end) };
  const { url } = await createServedDatabase();
  const folder = await folderWith(t, {});
  const settings = { ...ownDatabase(url), FLOW_SERVER_TOKEN: OPERATOR, FLOW_PURE_STEPS: "workers" };
  const server = await startServe(t, folder, settings);
  const known = { FLOW_SERVER_URL: server.url, FLOW_SERVER_TOKEN: OPERATOR, FLOW_GATEWAY_INTERNAL_PORT: "0" };
  gateway = await startServe(t, folder, known, ["--role", "gateway"]);
  const database = open(url);
  const operate = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${OPERATOR}`);
    return fetch(`${server.url}${path}`, { ...init, headers });
  };
  attacked = await createAttacked(storedResults({ open: { request: operate }, database }), database, "", GIVEN);
});
after(async () => {
  agent.destroy();
  for (const end of atEnd.reverse()) await end();
});

/** The call with a session; of a stream the first part. */
function send(
  { user }: Attacker,
  { method, address, body }: Pick<Call, "method" | "address" | "body">,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(gateway.url);
    const headers = {
      authorization: `Bearer ${user.token}`,
      ...(body !== undefined && { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
    };
    const sent = request(
      { agent, hostname, port, method, path: address.replace(/^\/api\//, "/flow/"), headers },
      (response) => {
        let text = "";
        const status = response.statusCode ?? 0;
        const isStream = response.headers["content-type"]?.startsWith("text/event-stream") === true;
        response.on("data", (part: Buffer) => {
          text += part.toString();
          if (!isStream) return;
          resolve({ status, text });
          response.destroy();
        });
        response.on("end", () => resolve({ status, text }));
        response.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

test("a session's token is what the calls come with: without one, and with the operator's, nothing is given", async () => {
  const path = `/api/catalog/resource/${OURS}`;
  const owner = attacked.users.find(({ who }) => who === "a member of a team") ?? assert.fail();
  const call = { method: "GET", address: path };
  assert.equal((await send(owner, call)).status, 200);
  for (const token of ["", "wrong", OPERATOR]) {
    const { status, text } = await send({ ...owner, user: { ...owner.user, token } }, call);
    assert.equal(status, 401, text);
  }
});

for (const who of WHO) {
  test(`${who}, through a gateway: no form of any input gives or changes what belongs to a path beyond their rows`, {
    timeout: 120_000,
  }, async (context) => {
    const { things, users, stateOf } = attacked;
    const sample = sampleOf(who, SIZE);
    context.diagnostic(sample.told);
    const attacker = users.find((one) => one.who === who) ?? assert.fail(who);
    const kept = GIVEN.filter((path) => !attacker.changes.includes(path));
    const before = await Promise.all(kept.map(stateOf));
    const hidden = GIVEN.filter((path) => !attacker.views.includes(path)).map(canaryOf);
    const own = things.get(OURS) ?? assert.fail(OURS);
    const answers = new Map<number, number>();
    for (const path of kept) {
      await context.test(`what belongs to ${path}`, async () => {
        const about = things.get(path) ?? assert.fail(path);
        for (const route of FOR_USERS) {
          for (const call of sample.of(callsOf(route, about, mayLose(route) ? about : own))) {
            const { status, text } = await send(attacker, call);
            const what = `${sample.told}: ${who}: ${call.what}: ${call.method} ${call.address} ${call.body ?? ""}: ${status} ${text.slice(0, 500)}`;
            for (const canary of hidden) assert.ok(!text.includes(canary), what);
            assert.ok(status < 500, what);
            answers.set(status, 1 + (answers.get(status) ?? 0));
          }
        }
      });
    }
    assert.deepEqual(await Promise.all(kept.map(stateOf)), before, who);
    // Calls that went astray, at another address or without the session, would prove nothing.
    const told = JSON.stringify([...answers]);
    if (kept.length > 0) assert.ok((answers.get(403) ?? 0) > 20 && (answers.get(401) ?? 0) === 0, told);
  });
}
