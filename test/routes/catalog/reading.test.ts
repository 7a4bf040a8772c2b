import assert from "node:assert/strict";
import { test } from "node:test";
import { type Body, openApi, playbook, posted, TOKENS } from "../../support/service/api.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

/* How much of a server's work one user may ask for by having documents read. */

const api = await openApi();

async function send(user: TestUser | undefined, route: "validate" | "register", content: string) {
  const headers = {
    authorization: `Bearer ${TOKENS.operator}`,
    ...(user !== undefined && { "x-flow-session": user.tokenSha256 }),
  };
  const response = await api.guarded.request(`/api/catalog/${route}`, posted({ content }, headers));
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}

/** A document of so many characters. */
function long(length: number, path = "team/long"): string {
  const text = playbook(path);
  return `${text}#${"x".repeat(length - text.length - 2)}\n`;
}

const MOST = 64 * 1024;

test("users who may register nothing can have 64 KiB read, and are told so beyond; others 1 MiB", async () => {
  const viewer = await addUser(api.database, { roles: ["viewer"] });
  const author = await addUser(api.database);
  await allow(api.database, author, [{ allow: "team/**", can: ["modify"] }]);
  for (const [length, status] of [
    [MOST - 1, 200],
    [MOST, 200],
    [MOST + 1, 413],
  ] as const) {
    assert.equal((await send(viewer, "validate", long(length))).status, status, String(length));
  }
  const { status, body } = await send(viewer, "validate", long(MOST + 1));
  assert.deepEqual([status, body["code"]], [413, "TOO_LARGE"]);
  assert.match(String(body["error"]), /has 65,537 characters, .* can have 65,536 read/);
  assert.equal((await send(viewer, "register", long(MOST + 1))).status, 413);
  assert.equal((await send(viewer, "register", long(MOST))).status, 403);
  for (const user of [author, undefined]) {
    assert.equal((await send(user, "validate", long(MOST + 1))).status, 200);
    assert.equal((await send(user, "register", long(MOST + 1))).status, 200);
  }
});

test("a user who sends many large documents at once is told to wait, and other users are answered", async () => {
  const [many, one] = [await addUser(api.database), await addUser(api.database)];
  for (const user of [many, one]) await allow(api.database, user, [{ allow: "team/**", can: ["modify"] }]);
  const steps = Array.from({ length: 3_000 }, (_, index) => `  - {step: s${index}, tool: {kind: noop}}`).join("\n");
  const slow = playbook("team/slow").replace(/workflow:[\s\S]*/, `workflow:\n${steps}\n`);
  const answers = Promise.all(Array.from({ length: 12 }, () => send(many, "validate", slow)));
  const other = await send(one, "validate", long(MOST + 1));
  assert.equal(other.status, 200);
  const statuses = (await answers).map(({ status }) => status).sort();
  assert.deepEqual(new Set(statuses), new Set([200, 429]));
  assert.ok(statuses.filter((status) => status === 200).length >= 4, String(statuses));
  const refused = (await answers).find(({ status }) => status === 429);
  assert.deepEqual([refused?.body["code"], refused?.headers.get("retry-after")], ["RATE_LIMITED", "1"]);
  assert.equal((await send(many, "validate", slow)).status, 200);
});
