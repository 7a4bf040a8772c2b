import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { before, test } from "node:test";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { type Claimed, endOf, ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

/* The files of an execution: what tasks have stored and reported, and nothing else. */

const FILES_BYTES_MAX = 5_000;
const api = await openApi({ FLOW_EXECUTION_FILES_BYTES_MAX: String(FILES_BYTES_MAX) });
const work = workWith(api);
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0xff]);

before(() => work.register("files/one", ONE_STEP));

async function claimed(id: string, worker = "w"): Promise<Claimed> {
  const [command] = await work.claim(worker);
  assert.equal(command?.execution_id, id);
  return command as Claimed;
}

const refOf = ({ execution_id, command_id }: Claimed, name: string) =>
  `noetl://execution/${execution_id}/step/start/task/start/run/${command_id}-0/artifact/${encodeURIComponent(name)}`;

function put(command: Claimed, name: string, content: string | Buffer, contentType: string, worker = "w") {
  const { command_id, attempt } = command;
  const query = new URLSearchParams({
    ...{
      ref: refOf(command, name),
      worker,
      command_id,
      attempt: String(attempt),
      content_type: contentType,
      ttl: "36500d",
    },
  });
  return api.open.request(`/api/results?${query}`, { method: "PUT", body: content } as RequestInit);
}

/** What a task that stores a file reports of it. */
const said = (command: Claimed, name: string) => ({ name, ref: refOf(command, name) });
const filesOf = (id: string) => work.get(`/api/executions/${id}/artifacts`);
const namesOf = async (id: string) => ((await filesOf(id)).body["artifacts"] as Body[]).map(({ name }) => name);

test("a file that was stored and reported is listed with type, size and checksum, and read in whole and in part", async () => {
  const id = await work.execute("files/one");
  const command = await claimed(id);
  assert.equal((await put(command, "chart ü.png", PNG, "image/png")).status, 200);
  await work.finish("w", command, said(command, "chart ü.png"));
  await work.runToEnd(id);
  const { status, body } = await filesOf(id);
  assert.equal(status, 200);
  const [file] = body["artifacts"] as Body[];
  const { created_at, ...rest } = file ?? {};
  assert.match(String(created_at), /^\d{4}-.*Z$/);
  assert.deepEqual(
    [rest, body["truncated"]],
    [
      {
        ...{ name: "chart ü.png", step: "start", task: "start", ref: refOf(command, "chart ü.png") },
        ...{ content_type: "image/png", bytes: PNG.length, sha256: createHash("sha256").update(PNG).digest("hex") },
      },
      false,
    ],
  );
  const address = `/api/results/resolve?${new URLSearchParams({ ref: String(rest["ref"]) })}`;
  const whole = await api.open.request(address);
  assert.deepEqual(Buffer.from(await whole.arrayBuffer()), PNG);
  const part = await api.open.request(address, { headers: { range: "bytes=1-3" } });
  assert.deepEqual([part.status, Buffer.from(await part.arrayBuffer()).toString()], [206, "PNG"]);
});

test("what a browser gets of a file is a download that it neither interprets nor guesses", async () => {
  const id = await work.execute("files/one");
  const command = await claimed(id);
  const name = 'a"; filename=x.html';
  await put(command, name, "<script>alert(1)</script>", "text/html; charset=utf-8");
  await work.finish("w", command, said(command, name));
  const { headers } = await api.open.request(
    `/api/results/resolve?${new URLSearchParams({ ref: refOf(command, name) })}`,
  );
  assert.equal(headers.get("content-disposition"), 'attachment; filename="a_ filename_x.html"');
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.match(headers.get("content-security-policy") ?? "", /^sandbox; default-src 'none'/);
});

test("what a lost claim has stored is no file of the execution, and what it wants to store is refused", async () => {
  const id = await work.execute("files/one");
  const first = await claimed(id);
  assert.equal((await put(first, "left.txt", "of the first", "text/plain")).status, 200);
  assert.equal((await put(first, "both.txt", "of the first", "text/plain")).status, 200);
  assert.deepEqual(await namesOf(id), []);
  await api.database
    .sql`update flow.command set lease_expires_at = now() - interval '1 hour' where command_id = ${first.command_id}`;
  const taken = await work.post(`/api/commands/${first.command_id}/claim`, { worker: "other" });
  assert.deepEqual([taken.status, taken.body["attempt"]], [200, 2]);
  const second = { ...first, attempt: 2 };
  assert.equal((await put(first, "late.txt", "of the first", "text/plain")).status, 409);
  await work.finish("w", first, [said(first, "left.txt"), said(first, "both.txt")]);
  assert.deepEqual(await namesOf(id), []);
  assert.equal((await put(second, "both.txt", "of the second", "text/plain", "other")).status, 200);
  await work.finish("other", second, said(second, "both.txt"));
  assert.deepEqual(await namesOf(id), ["both.txt"]);
  const read = await api.open.request(
    `/api/results/resolve?${new URLSearchParams({ ref: refOf(second, "both.txt") })}`,
  );
  assert.equal(await read.text(), "of the second");
});

test("files go with their execution; one that is not there is 404, and one without files has none", async () => {
  const id = await work.execute("files/one");
  assert.deepEqual((await filesOf(id)).body, { artifacts: [], truncated: false });
  const command = await claimed(id);
  await put(command, "a.txt", "a", "text/plain");
  await work.finish("w", command, said(command, "a.txt"));
  await work.runToEnd(id);
  assert.deepEqual(await namesOf(id), ["a.txt"]);
  assert.ok((await work.send("DELETE", `/api/executions/${id}`)).status < 300);
  assert.equal((await filesOf(id)).status, 404);
  const rows = await api.database.sql`select from flow.result where execution_id = ${id} and state = 'stored'`;
  assert.equal(rows.length, 0);
});

test("files are listed only for who may view the playbook", async () => {
  const id = await work.execute("files/one");
  const command = await claimed(id);
  await put(command, "a.txt", "a", "text/plain");
  await work.finish("w", command, said(command, "a.txt"));
  const [reader, other] = [await addUser(api.database), await addUser(api.database)];
  await allow(api.database, reader, [{ path: "files/one", allow: "files/one", can: ["view"] }]);
  const get = (user: TestUser) =>
    api.guarded.request(`/api/executions/${id}/artifacts`, {
      headers: { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 },
    });
  assert.equal((await get(other)).status, 403);
  assert.equal((await get(reader)).status, 200);
});

/** The events of a command whose task has left these files. */
function leaving(command: Claimed, names: string[], more: Body = {}): Body[] {
  const [done, ...rest] = endOf(command, { n: 1 });
  const { result } = done as { result: { context: Body } };
  const context = { ...result.context, files: names.map((name) => refOf(command, name)), ...more };
  return [{ ...done, result: { ...result, context } }, ...rest];
}
const report = (worker: string, events: Body[]) => work.post("/api/events/batch", { worker, events });

test("files that a task has left are those that its report names, beside any result; names have folders", async () => {
  const id = await work.execute("files/one");
  const command = await claimed(id);
  for (const name of ["tables/a.csv", "unnamed.csv"]) await put(command, name, "a,b", "text/csv");
  assert.deepEqual(await namesOf(id), []);
  assert.equal((await report("w", leaving(command, ["tables/a.csv", "never stored"]))).status, 202);
  await work.runToEnd(id);
  assert.deepEqual(await namesOf(id), ["tables/a.csv"]);
});

test("a report that is refused names no files, and a report of another execution's files adds none", async () => {
  const id = await work.execute("files/one");
  const command = await claimed(id);
  await put(command, "a.txt", "a", "text/plain");
  for (const files of [
    ["noetl://execution/1/step/a/task/a/run/1"],
    [3],
    "a.txt",
    Array.from({ length: 101 }, (_, at) => refOf(command, `${at}`)),
  ]) {
    const { status, body } = await report("w", leaving(command, [], { files }));
    assert.deepEqual([status, JSON.stringify(body).includes("files: is of the wrong type")], [422, true]);
  }
  assert.deepEqual(await namesOf(id), []);
  const other = await work.execute("files/one");
  const theirs = await claimed(other, "thief");
  assert.equal((await report("thief", leaving(theirs, [], { files: [refOf(command, "a.txt")] }))).status, 202);
  await work.runToEnd(other);
  assert.deepEqual(await namesOf(other), []);
  await report("w", leaving(command, ["a.txt"]));
  assert.deepEqual(await namesOf(id), ["a.txt"]);
});

test("an execution has a thousand files: the next is refused, and one of those is still replaced", async () => {
  const id = await work.execute("files/one");
  const command = await claimed(id);
  await put(command, "0", "x", "text/plain");
  await api.database.sql`
    insert into flow.result (execution_id, ref, root_execution_id, writing, state, store, scope, expires_at, content_type, bytes, sha256, is_sealed, payload)
    select execution_id, left(ref, -1) || number, root_execution_id, '', state, store, scope, expires_at, content_type, bytes, sha256, is_sealed, payload
    from flow.result, generate_series(1, 998) as number where execution_id = ${id}`;
  assert.equal((await put(command, "999", "x", "text/plain")).status, 200);
  const refused = await put(command, "1000", "x", "text/plain");
  assert.equal(refused.status, 422);
  assert.match(await refused.text(), /has stored 1,000 files, and more are not taken/);
  assert.equal((await put(command, "7", "again", "text/plain")).status, 200);
});

test("the files of an execution have so many bytes together: one fewer and as many are taken, one more is refused and says what to do", async () => {
  const id = await work.execute("files/one");
  const command = await claimed(id);
  const sized = (name: string, bytes: number) => put(command, name, Buffer.alloc(bytes, 1), "text/plain");
  assert.equal((await sized("first", 2_000)).status, 200);
  assert.equal((await sized("second", FILES_BYTES_MAX - 2_000 - 1)).status, 200);
  // It takes the place of the one before: that does not count.
  assert.equal((await sized("second", FILES_BYTES_MAX - 2_000)).status, 200);
  const refused = await sized("second", FILES_BYTES_MAX - 2_000 + 1);
  assert.equal(refused.status, 507);
  const { error, code } = (await refused.json()) as Body;
  assert.equal(code, "NOT_STORED");
  assert.match(
    String(error),
    /"second" was not stored: it has 3,001 bytes, and .* may have 3,000 more, of 5,000 together/,
  );
  assert.match(String(error), /Store smaller files, .* or raise FLOW_EXECUTION_FILES_BYTES_MAX/);
  assert.equal((await sized("third", 1)).status, 507);
  assert.equal((await sized("third", 0)).status, 200);
  // What was there is still there, and results are no files.
  const kept = await api.database.sql<{ bytes: number }[]>`
    select bytes::int as bytes from flow.result where execution_id = ${id} and writing = '' order by bytes`;
  assert.deepEqual(
    kept.map(({ bytes }) => bytes),
    [0, 2_000, 3_000],
  );
  const other = refOf(command, "x").replace("/artifact/x", "");
  const query = new URLSearchParams({ ref: other, worker: "w", command_id: command.command_id, attempt: "1" });
  const result = { method: "PUT", body: JSON.stringify("r".repeat(9_000)) };
  assert.equal((await api.open.request(`/api/results?${query}`, result)).status, 200);
  await work.finish("w", command, said(command, "first"));
});

test("a rerun lists the files of steps that it has taken over too, and of those that it runs again only its own", async () => {
  await work.register("files/two", TWO_STEPS);
  const run = async (id: string, name: string) => {
    for (;;) {
      if ((await work.get(`/api/executions/${id}`)).body["ended_at"] !== null) return;
      for (const command of (await work.claim("w", 10, 200)) as Claimed[]) {
        const file = `${command.step}-${name}.txt`;
        const ref = refOf(command, file).replace(
          "/step/start/task/start/",
          `/step/${command.step}/task/${command.step}/`,
        );
        const query = new URLSearchParams({
          ...{
            ref,
            worker: "w",
            command_id: command.command_id,
            attempt: String(command.attempt),
            content_type: "text/plain",
          },
          ttl: "36500d",
        });
        const stored = await api.open.request(`/api/results?${query}`, { method: "PUT", body: name });
        assert.equal(stored.status, 200, await stored.text());
        await work.finish("w", command, { name: file, ref });
      }
    }
  };
  const original = await work.execute("files/two");
  await run(original, "first");
  const { body: begun } = await work.post(`/api/executions/${original}/rerun`, { from: ["end"] });
  const rerun = String(begun["execution_id"]);
  await run(rerun, "second");
  const { body: again } = await work.post(`/api/executions/${rerun}/rerun`, { from: ["end"] });
  const third = String(again["execution_id"]);
  await run(third, "third");
  const listed = async (id: string) =>
    ((await filesOf(id)).body["artifacts"] as Body[]).map(({ name, reused_from }) => [name, reused_from]);
  assert.deepEqual(await listed(original), [
    ["start-first.txt", undefined],
    ["end-first.txt", undefined],
  ]);
  assert.deepEqual(await listed(rerun), [
    ["start-first.txt", original],
    ["end-second.txt", undefined],
  ]);
  // What a rerun of a rerun takes over stands where it ran.
  assert.deepEqual(await listed(third), [
    ["start-first.txt", original],
    ["end-third.txt", undefined],
  ]);
  const { body: whole } = await work.post(`/api/executions/${original}/rerun`, { from: ["start"] });
  await run(String(whole["execution_id"]), "fourth");
  assert.deepEqual(await listed(String(whole["execution_id"])), [
    ["start-fourth.txt", undefined],
    ["end-fourth.txt", undefined],
  ]);
});
