import assert from "node:assert/strict";
import { test } from "node:test";
import { openApi, posted, TOKENS } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

/* Which code may share a process on a worker: a claim says so with `trust_domain`. */

const api = await openApi();
const work = workWith(api);

const CALLER = `  - step: call
    tool: { kind: playbook, path: trust/child }
`;
const CODE = `  - step: code
    tool: { kind: noop }
`;

async function execute(path: string, user?: TestUser): Promise<string> {
  const headers = {
    authorization: `Bearer ${TOKENS.operator}`,
    ...(user !== undefined && { "x-flow-session": user.tokenSha256 }),
  };
  const response = await api.guarded.request("/api/execute", posted({ path }, headers));
  const body = (await response.json()) as { execution_id: string };
  assert.equal(response.status, 200, JSON.stringify(body));
  return body.execution_id;
}

test("a claim's trust domain is its playbook and the user in whose name it runs", async () => {
  for (const path of ["trust/one", "trust/two"]) await work.register(path, CODE);
  const [ada, bob] = [await addUser(api.database), await addUser(api.database)];
  for (const user of [ada, bob]) await allow(api.database, user, [{ allow: "trust/**", can: ["execute"] }]);
  const started = [
    await execute("trust/one", ada),
    await execute("trust/one", ada),
    await execute("trust/one", bob),
    await execute("trust/two", ada),
    await execute("trust/one"),
    await execute("trust/one"),
  ];
  const claimed = new Map<string, unknown>();
  while (claimed.size < started.length) {
    for (const command of await work.claim("w", 10)) claimed.set(command.execution_id, command["trust_domain"]);
  }
  const [one, again, other, two, operator, operatorAgain] = started.map((id) => claimed.get(id));
  assert.equal(one, again);
  assert.equal(operator, operatorAgain);
  assert.equal(new Set([one, other, two, operator]).size, 4);
});

test("a child runs in the domain of its own path and of the user who started its parent", async () => {
  await work.register("trust/child", CODE);
  await work.register("trust/caller", CALLER);
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "trust/**", can: ["execute"] }]);
  const parent = await execute("trust/caller", user);
  const [call] = await work.claim("w");
  assert.equal(call?.execution_id, parent);
  const child = await work.execute("trust/child", { parent_execution_id: parent, parent_step: "call" });
  const [code] = await work.claim("w");
  assert.equal(code?.execution_id, child);
  assert.equal(code["trust_domain"], `trust/child user ${user.userId}`);
  assert.equal(call["trust_domain"], `trust/caller user ${user.userId}`);
});
