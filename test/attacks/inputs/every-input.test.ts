import assert from "node:assert/strict";
import { before, test } from "node:test";
import { storedResults } from "../../support/database/stored-results.ts";
import { openApi, TOKENS } from "../../support/service/api.ts";
import type { TestUser } from "../../support/service/users.ts";
import { type Attacked, createAttacked, OURS, PATHS, WHO } from "../support/attacked.ts";
import { type Call, callsOf, canaryOf, FOR_USERS, inputsOf, mayLose, NAMES, type Named } from "../support/inputs.ts";
import { sampleOf } from "../support/sample.ts";

/*
 * Every input that names an execution, a catalog entry, a result, a command, a credential or a path, in forms of every kind
 * (support/sample.ts), by every kind of user. The inputs come from the route contracts, so that a new route is covered by itself. No answer
 * may hold anything of a path that its caller may not view, and nothing of such a path may change.
 */

const api = await openApi();
let attacked: Attacked;
before(async () => {
  attacked = await createAttacked(storedResults(api), api.database);
});

async function send(user: TestUser, { method, address, body }: Call): Promise<{ status: number; text: string }> {
  const headers = {
    authorization: `Bearer ${TOKENS.operator}`,
    "x-flow-session": user.tokenSha256,
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const response = await api.guarded.request(address, { method, headers, ...(body !== undefined && { body }) });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream"))
    return { status: response.status, text: await response.text() };
  // A stream of an open execution does not end: its first part says whether it was given.
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return { status: response.status, text: Buffer.from(first?.value ?? []).toString() };
}

test("every input of a route that users may call is known to name something or nothing", () => {
  const names = FOR_USERS.flatMap((route) => Object.values(inputsOf(route)).flat());
  assert.deepEqual(
    names.filter((name) => !Object.hasOwn(NAMES, name)),
    [],
    "add it to NAMES, with what its values name",
  );
});

for (const who of WHO) {
  test(`${who}: no form of any input gives or changes what belongs to a path beyond their rows`, {
    timeout: 120_000,
  }, async (context) => {
    const { things, users, stateOf } = attacked;
    const sample = sampleOf(who);
    context.diagnostic(sample.told);
    const { user, views, changes } = users.find((one) => one.who === who) ?? assert.fail(who);
    const kept = PATHS.filter((path) => !changes.includes(path));
    const before = await Promise.all(kept.map(stateOf));
    const hidden = PATHS.filter((path) => !views.includes(path)).map(canaryOf);
    const own = things.get(OURS) as Named;
    const given = new Set<string>();
    for (const path of PATHS) {
      const about = things.get(path) as Named;
      for (const route of FOR_USERS) {
        // What a member may do to their own is not tried: it would be gone for the tests behind.
        if (route.method !== "get" && changes.includes(path)) continue;
        for (const call of sample.of(callsOf(route, about, mayLose(route) ? about : own))) {
          const { status, text } = await send(user, call);
          const what = `${sample.told}: ${who}: ${call.what}: ${call.method} ${call.address} ${call.body ?? ""}: ${status} ${text.slice(0, 500)}`;
          for (const canary of hidden) assert.ok(!text.includes(canary), what);
          assert.ok(status < 500, what);
          if (text.includes(canaryOf(path))) given.add(`${route.method} ${route.path}`);
        }
      }
    }
    assert.deepEqual(await Promise.all(kept.map(stateOf)), before, who);
    if (views.length > 0) assert.ok(given.size >= 5, `given by ${[...given].join(", ")}`);
    else assert.deepEqual([...given], []);
  });
}
