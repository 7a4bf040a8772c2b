import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { type Claimed, endOf, workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

// What the templates of a command came to, asked for over HTTP.

const api = await openApi();
const work = workWith(api);
const SEALED = "[sealed:k1:Zm9vYmFyYmF6]";

before(async () => {
  await work.register(
    "team/around",
    `  - step: get
    tool: { kind: http, url: "http://x.test/{{ page | default(1) }}", headers: { x: "{{ keychain.a }}" } }
    set: { page: "{{ output.data.next }}" }
    next:
      spec: { mode: exclusive }
      arcs:
        - { step: get, when: "{{ output.data.next is number }}" }
        - { step: use, args: { given: "{{ output.data.token }}" } }
  - step: use
    tool:
      - first: { kind: http, url: "http://x.test/{{ given }}/{{ who }}" }
      - second: { kind: http, url: "http://x.test/{{ first.id }}/{{ 1 / first.zero }}" }
`,
  );
  await work.register(
    "team/each",
    `  - step: each
    loop: { in: [a, b, c], iterator: x, spec: { mode: parallel, policy: { exec: local } } }
    tool: { kind: http, url: "http://x.test/{{ x }}/{{ iter.index }}" }
`,
  );
});

/** Reports, and claims what follows of the same execution. */
async function next(worker: string, events: Body[]): Promise<Claimed | undefined> {
  const { status, body } = await work.post("/api/events/batch", { worker, events, claim: { limit: 1, wait_ms: 0 } });
  assert.equal(status, 202, JSON.stringify(body));
  return (body["commands"] as Claimed[])[0];
}

async function begin(path: string, worker: string): Promise<Claimed> {
  const id = await work.execute(path);
  for (;;) {
    const [command] = await work.claim(worker);
    if (command?.execution_id === id) return command;
  }
}

const address = ({ execution_id, command_id }: Claimed, more = "") =>
  `/api/executions/${execution_id}/rendered?command_id=${command_id}${more}`;

async function rendered(command: Claimed, more = ""): Promise<Body> {
  const { status, body } = await work.get(address(command, more));
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const task = (body: Body, index = 0) => (body["tasks"] as Body[])[index] ?? {};
const url = (body: Body, index = 0) => (task(body, index)["rendered"] as Body)["url"];

test("each command keeps what it was given, also after a jump back to its step", async () => {
  const first = await begin("team/around", "w-around");
  const second = await next("w-around", endOf(first, { next: 2 }));
  assert.ok(second?.step === "get");
  const third = await next("w-around", endOf(second, { next: "no", token: SEALED }));
  assert.ok(third?.step === "use");
  assert.equal(url(await rendered(first)), "http://x.test/1");
  const body = await rendered(second);
  const { tasks: _, ...about } = body;
  assert.deepEqual(about, { command_id: second.command_id, step: "get", attempt: 1 });
  assert.deepEqual(task(body), {
    task: "get",
    kind: "http",
    template: { url: "http://x.test/{{ page | default(1) }}", headers: { x: "{{ keychain.a }}" } },
    rendered: { url: "http://x.test/2", headers: { x: "[secret]" } },
    unknown: [],
    secret: ["headers.x"],
    errors: [],
  });
  // While its first task is under way.
  const use = await rendered(third);
  assert.deepEqual([url(use), task(use)["secret"]], ["http://x.test/[secret]/world", ["input.given", "url"]]);
  assert.deepEqual(task(use, 1)["unknown"], [{ path: "url", waits_for: ["first"] }]);
  const { command_id, attempt, step } = third;
  const result = { status: "ok", context: { value: { id: 7, zero: 0 } } };
  await next("w-around", [
    { command_id, attempt, step, event_type: "task.done", task: "first", task_run_id: "1", result },
  ]);
  const later = await rendered(third);
  assert.equal(url(later, 1), "http://x.test/7/{{ 1 / first.zero }}");
  assert.match(String((task(later, 1)["errors"] as Body[])[0]?.["message"]), /zero/i);
  assert.doesNotMatch(JSON.stringify([use, later]), /sealed/);
});

test("each iteration of a loop is shown, the first by default", async () => {
  const command = await begin("team/each", "w-each");
  assert.equal(url(await rendered(command)), "http://x.test/a/0");
  const body = await rendered(command, "&iteration=2&attempt=1");
  assert.deepEqual([body["iteration"], url(body)], [2, "http://x.test/c/2"]);
});

test("a command that has ended is shown as it was issued, also one that no worker had", async () => {
  const looped = await begin("team/each", "w-ended");
  const shown = await rendered(looped, "&iteration=1");
  await api.database.sql`delete from flow.command where command_id = ${looped.command_id}`;
  assert.deepEqual(await rendered(looped, "&iteration=1"), shown);
  const id = await work.execute("team/around");
  const [{ command_id = "" } = {}] = (await work.get(`/api/executions/${id}`)).body["commands"] as Claimed[];
  const waiting = { execution_id: id, command_id } as Claimed;
  const before = await rendered(waiting);
  await work.post(`/api/executions/${id}/cancel`);
  const rows = await api.database.sql`select from flow.command where command_id = ${command_id}`;
  assert.equal(rows.length, 0);
  assert.deepEqual(await rendered(waiting), before);
  assert.equal(before["attempt"], 0);
  const [status, body] = await work.get(address(waiting, "&attempt=1")).then((found) => [found.status, found.body]);
  assert.deepEqual([status, /was not claimed yet/.test(JSON.stringify(body))], [422, true]);
});

test("an unclaimed command is shown as it would be", async () => {
  const id = await work.execute("team/each");
  const { body } = await work.get(`/api/executions/${id}`);
  const [{ command_id = "" } = {}] = body["commands"] as Claimed[];
  const shown = await rendered({ execution_id: id, command_id } as Claimed);
  assert.deepEqual([shown["attempt"], url(shown)], [0, "http://x.test/a/0"]);
});

test("an unknown command, another execution's command, an unknown iteration and an unknown claim are refused", async () => {
  const command = await begin("team/each", "w-not");
  const other = await begin("team/around", "w-not");
  for (const [path, status, says] of [
    [address({ ...command, command_id: "999999999999" }), 404, /has no command 999999999999/],
    [address({ ...command, command_id: other.command_id }), 404, /has no command/],
    [address(command, "&iteration=3"), 422, /iterations 0 to 2, and not 3/],
    [address(other, "&iteration=0"), 422, /of no loop/],
    [address(command, "&attempt=2"), 422, /was claimed 1 times: there is no attempt 2/],
    [address(command, "&attempt=0"), 422, /there is no attempt 0/],
    [address(command, "&iteration=one"), 422, /iteration/],
    [`/api/executions/${command.execution_id}/rendered`, 422, /command_id/],
    [`/api/executions/${command.execution_id}/rendered?command_id=x`, 422, /command_id/],
    ["/api/executions/999999999999/rendered?command_id=1", 404, /999999999999/],
  ] as const) {
    const answer = await work.get(path);
    assert.equal(answer.status, status, `${path}: ${JSON.stringify(answer.body)}`);
    assert.match(JSON.stringify(answer.body), says);
  }
});

test("only who may view the execution sees it", async () => {
  const command = await begin("team/each", "w-who");
  const member = await addUser(api.database);
  await allow(api.database, member, [{ allow: "team/**", can: ["view"] }]);
  const stranger = await addUser(api.database);
  await allow(api.database, stranger, [{ allow: "other/**", can: ["view"] }]);
  const operator = { authorization: `Bearer ${TOKENS.operator}` };
  for (const [headers, status] of [
    [operator, 200],
    [{ ...operator, "x-flow-session": member.tokenSha256 }, 200],
    [{ ...operator, "x-flow-session": stranger.tokenSha256 }, 403],
    [{ authorization: `Bearer ${TOKENS.worker}` }, 403],
    [{}, 401],
  ] as const) {
    assert.equal((await api.guarded.request(address(command), { headers: { ...headers } })).status, status);
  }
});
