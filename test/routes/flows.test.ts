import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { command } from "../cli/in-process.ts";
import { openApi } from "../support/service/api.ts";
import { endOf, workWith } from "../support/service/api-work.ts";

/*
 * How many files of `src/` take part in one call, by V8's call counts: files of which a function ran between its beginning and
 * its answer, module bodies left out. The call is made several times and the smallest number counts: what a first call prepares
 * (compiled templates, reserved ids, pooled connections) is not part of the flow. Bounds only go down.
 */

/** Files of all rooms. Now and then a timer or a connection's watch falls into every try: up to two files more than on a quiet machine. */
const FILES_MAX = { execute: 81, report: 70, read: 31, local: 135 };
/** Files of the walk: those of which two functions or more ran. A file that lends one function is read by that function's name. */
const WALK_MAX = { execute: 38, report: 37, read: 12, local: 50 };
/** The same with files of which one function ran; one more than measured, for timers. Every report marks where reruns go on. */
const TOUCHED_MAX = { execute: 58, report: 51, read: 19, local: 62 };
/**
 * Rooms that a reader of any flow takes on trust: words and shapes, what every process needs, the language of expressions and
 * documents, the connection to the database. The clock is one too: timers of all services of this process ask it, whenever they are due.
 */
const TRUSTED = /^(?:schema|platform|language|repositories\/database|adapters\/system-clock)\b/;
/** On a busy machine timers fall due during a call, and their files count. */
const TRIES = 20;
const SRC = pathToFileURL(join(import.meta.dirname, "../../src")).href;

const session = new Session();
const api = await openApi();
const work = workWith(api);
const folder = await mkdtemp(join(tmpdir(), "flow-walk-"));
after(() => rm(folder, { recursive: true, force: true }));

const STEPS = `  - step: one
    tool: { kind: noop, result: { said: "{{ who }}" } }
    next: { arcs: [{ step: two }] }
  - step: two
    tool: { kind: noop }
`;

before(async () => {
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await work.register("walk/two", STEPS);
  const head =
    "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: two, path: walk/two }\nworkload: { who: world }\n";
  await writeFile(join(folder, "two.yaml"), `${head}workflow:\n${STEPS}`);
});
after(() => session.disconnect());

interface Used {
  name: string;
  functions: number;
}

/** Files whose functions ran during `call`; since the last look what ran before is forgotten. */
async function filesOf(call: () => Promise<unknown>): Promise<Used[]> {
  await session.post("Profiler.takePreciseCoverage");
  await call();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  return result
    .filter(({ url }) => url.startsWith(SRC))
    .map(({ url, functions }) => ({ name: relative(SRC, url), functions: functions.filter(ran).length }))
    .filter((file) => file.functions > 0)
    .sort((left, right) => (left.name < right.name ? -1 : 1));
}

/** Functions only: a module's own body begins at its first character. */
function ran({ ranges: [whole] }: { ranges: { startOffset: number; count: number }[] }): boolean {
  return whole !== undefined && whole.startOffset > 0 && whole.count > 0;
}

/** The smallest walk of several. `prepare` is not part of it. */
async function walkOf<T>(prepare: () => Promise<T>, call: (prepared: T) => Promise<unknown>): Promise<Used[]> {
  let best: Used[] | undefined;
  for (let count = 0; count < TRIES; count += 1) {
    const prepared = await prepare();
    const files = await filesOf(() => call(prepared));
    if (best === undefined || files.length < best.length) best = files;
  }
  return best ?? [];
}

function assertWithin(flow: keyof typeof FILES_MAX, files: readonly Used[]): void {
  const touched = files.filter(({ name }) => !TRUSTED.test(name));
  const walk = touched.filter(({ functions }) => functions > 1);
  assertAtMost(`${flow}, files of the walk`, walk, WALK_MAX[flow]);
  assertAtMost(`${flow}, files of the walk that lend a function`, touched, TOUCHED_MAX[flow]);
  assertAtMost(`${flow}, all files`, files, FILES_MAX[flow]);
}

function assertAtMost(what: string, files: readonly Used[], max: number): void {
  const list = files.map(({ name }) => name).join("\n");
  assert.ok(files.length <= max, `${what}: ${files.length}, at most ${max}:\n${list}`);
}

const nothing = async () => undefined;

test("starting an execution, up to its first command in the queue, takes few files", async () => {
  assertWithin("execute", await walkOf(nothing, () => work.execute("walk/two")));
});

test("a report with a claim, up to its next command, takes few files on the server", async () => {
  for (;;) if ((await work.claim("w", 100)).length < 100) break;
  const claimed = async () => {
    await work.execute("walk/two");
    const [first] = await work.claim("w");
    assert.ok(first);
    return first;
  };
  const files = await walkOf(claimed, async (first) => {
    const body = { worker: "w", events: endOf(first, "x"), claim: { limit: 1, wait_ms: 5_000 } };
    const answer = await work.post("/api/events/batch", body);
    assert.equal((answer.body["commands"] as unknown[]).length, 1, JSON.stringify(answer.body));
  });
  assertWithin("report", files);
});

test("reading one execution takes few files", async () => {
  const id = await work.execute("walk/two");
  assertWithin("read", await walkOf(nothing, () => work.get(`/api/executions/${id}`)));
});

test("a local run takes few files", async () => {
  const files = await walkOf(nothing, async () => {
    const { code, stderr } = await command(folder, ["run", "two.yaml", "--runtime", "local", "--json"]);
    assert.equal(code, 0, stderr);
  });
  assertWithin("local", files);
});
