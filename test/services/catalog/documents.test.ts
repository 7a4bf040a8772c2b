import assert from "node:assert/strict";
import { after, test } from "node:test";
import { loadRegistered } from "../../../src/language/load/load.ts";
import { createDocuments } from "../../../src/services/catalog/documents.ts";
import { readDocument } from "../../../src/services/catalog/read-document.ts";

const documents = createDocuments();
after(() => documents.close());

const AT_ONCE_MAX = 4 * 1024;
const MAX = 1024 * 1024;
const HEAD = "apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: large, path: large/one}\n";
const steps = (count: number) =>
  Array.from({ length: count }, (_, index) => {
    const next = index + 1 < count ? `, next: {arcs: [{step: s${index + 1}}]}` : "";
    return `- {step: s${index}, tool: {kind: noop}${next}}\n`;
  }).join("");
const playbook = (count: number) => `${HEAD}workflow:\n${steps(count)}`;
/** The text and a comment after it, `length` characters in all. */
const padded = (text: string, length: number) => `${text}#${" ".repeat(Math.max(0, length - text.length - 2))}\n`;

/** Whether it was read without waiting for anything: before the next turn of the event loop. */
async function isAtOnce(
  content: string,
  read: (content: string) => Promise<unknown> = documents.read,
): Promise<boolean> {
  let isRead = false;
  const reading = read(content).then(() => {
    isRead = true;
  });
  // Comes after all promises that are settled by now, and before what other threads send.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  const wasRead = isRead;
  await reading;
  return wasRead;
}

const CALLS = `${HEAD}workflow:\n- {step: one, tool: {kind: noop}, next: {arcs: [{step: two}]}}\n- {step: two, tool: {kind: playbook, path: some/child}}\n`;

for (const [what, text] of Object.entries({
  "a valid playbook": playbook(20),
  "one that calls others": CALLS,
  "one with a warning": `${HEAD}nonsense: 1\nworkflow:\n${steps(1)}`,
  "one with errors": `${HEAD}workflow:\n- {step: one, tool: {kind: noop}, next: {arcs: [{step: nowhere}]}}\n- {step: one}\n`,
  "one with a template that does not parse": `${HEAD}workflow:\n- {step: one, tool: {kind: noop, value: "{{ 1 + }}"}}\n`,
  "one with keys that objects have anyway": `${HEAD}workload: {__proto__: {a: 1}, constructor: 2, -0: -0.0}\nworkflow:\n${steps(1)}`,
  "an MCP resource":
    "apiVersion: flow/v2\nkind: Mcp\nmetadata: {name: m, path: mcp/m}\nspec: {url: 'http://127.0.0.1/'}\n",
  "no YAML": "a: [\n",
  "no map": "- a\n",
  "a text that ends in the middle": `a: ${"[".repeat(5_000)}`,
  "nesting without end": `a: ${"{a: ".repeat(3_000)}1${"}".repeat(3_000)}\n`,
  "aliases of aliases": `a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\n`,
  "half a surrogate pair": `${HEAD}workload: {a: "\ud800"}\nworkflow:\n${steps(1)}`,
  "control characters": `${HEAD}\u0000`,
})) {
  test(`${what} is read in the thread as it is at once`, async () => {
    const large = padded(text, AT_ONCE_MAX + 1);
    assert.deepEqual(await documents.read(large), plain(readDocument(large)));
    assert.deepEqual(await documents.read(text), readDocument(text));
    for (const content of [large, text]) {
      const { playbook, diagnostics } = await documents.registered(content, "p@1");
      const expected = loadRegistered(content, "p@1");
      assert.deepEqual(asJson(playbook), asJson(expected.playbook));
      // It is not called for a playbook that can run.
      if (expected.playbook === undefined) assert.deepEqual(plain(diagnostics), plain(expected.diagnostics));
    }
  });
}

/** With the order of its keys, which is that of the document. */
function asJson(value: unknown): string | undefined {
  return JSON.stringify(value);
}

/** Objects without a prototype get one on their way. */
function plain<T>(value: T): T {
  return structuredClone(value);
}

test("what is short is read at once, what is longer in the thread, and what is too long is refused at once", async () => {
  for (const [length, expected] of [
    [AT_ONCE_MAX - 1, true],
    [AT_ONCE_MAX, true],
    [AT_ONCE_MAX + 1, false],
    [MAX, false],
    [MAX + 1, true],
  ] as const) {
    const content = padded(playbook(1), length);
    assert.equal(await isAtOnce(content), expected, String(length));
    assert.equal(await isAtOnce(content, (text) => documents.registered(text, "p@1")), expected, String(length));
  }
  const { diagnostics } = await documents.read(padded(playbook(1), MAX + 1));
  assert.deepEqual(
    diagnostics.map(({ code }) => code),
    ["too-large"],
  );
});

test("large documents are read in the order in which they came, each with its own answer", async () => {
  const documents = createDocuments({ threads: 1 });
  const order: number[] = [];
  const read = await Promise.all(
    [700, 300, 500].map(async (count) => {
      const { document } = await documents.read(playbook(count));
      order.push(count);
      return (JSON.parse(document?.payload ?? "{}") as { workflow: unknown[] }).workflow.length;
    }),
  );
  assert.deepEqual(
    [read, order],
    [
      [700, 300, 500],
      [700, 300, 500],
    ],
  );
  await documents.close();
});

test("16 documents may wait; one more is refused", async () => {
  const busy = createDocuments({ threads: 1 });
  const large = padded(playbook(1), AT_ONCE_MAX + 1);
  const reading = Array.from({ length: 16 }, () => busy.read(large));
  await assert.rejects(busy.read(large), { code: "UNAVAILABLE", message: /16 large documents are before it/ });
  assert.equal((await busy.read(playbook(1))).document?.path, "large/one");
  await Promise.all(reading);
  assert.equal((await busy.read(large)).document?.path, "large/one");
  await busy.close();
});

test("playbooks of the catalog come before documents that wait, and 256 of them wait", async () => {
  const busy = createDocuments({ threads: 1 });
  const large = padded(playbook(1), AT_ONCE_MAX + 1);
  const order: string[] = [];
  const reading = [
    ...["first", "second"].map(async (name) => {
      await busy.read(large);
      order.push(name);
    }),
    ...Array.from({ length: 256 }, async (_, index) => {
      await busy.registered(large, "p@1");
      order.push(`playbook ${index}`);
    }),
  ];
  await assert.rejects(busy.registered(large, "p@1"), {
    code: "UNAVAILABLE",
    message: /256 large playbooks are before it/,
  });
  // They take no place of the documents.
  await busy.read(large);
  await Promise.all(reading);
  const playbooks = Array.from({ length: 256 }, (_, index) => `playbook ${index}`);
  // Of two playbooks the second may be done first: what the thread has read is finished here, in pieces.
  assert.deepEqual([order[0], order.at(-1)], ["first", "second"]);
  assert.deepEqual(new Set(order.slice(1, -1)), new Set(playbooks));
  await busy.close();
});

const ENDING = new URL("../support/document-thread-that-ends.js", import.meta.url);
const NEVER = padded(`${playbook(1)}# never ends\n`, AT_ONCE_MAX + 1);
const SOON = padded(playbook(1), AT_ONCE_MAX + 1);

test("a text that takes too long is an error for its caller, and the next one is read", async () => {
  const slow = createDocuments({ file: ENDING, readMs: 10_000, threads: 1 });
  const refused = assert.rejects(slow.read(NEVER), { code: "TIMEOUT", message: /after 10 s it was not done/ });
  const next = slow.read(SOON);
  await refused;
  assert.equal((await next).document?.path, "large/one");
  await slow.close();
});

test("of each user one document is read at a time; those of others are read beside it", async () => {
  const busy = createDocuments({ file: ENDING });
  const gone = new AbortController();
  const never = assert.rejects(busy.read(NEVER, { user: "one" }), { code: "UNAVAILABLE" });
  const waits = assert.rejects(busy.read(SOON, { user: "one", signal: gone.signal }), { code: "CANCELLED" });
  for (const caller of [{ user: "two" }, { user: "three" }, {}]) {
    assert.equal((await busy.read(SOON, caller)).document?.path, "large/one");
  }
  gone.abort();
  await waits;
  await busy.close();
  await never;
});

test("four documents of a user may wait; one more is refused, and other users' are read", async () => {
  const busy = createDocuments({ threads: 1 });
  const mine = Array.from({ length: 4 }, () => busy.read(SOON, { user: "one" }));
  const refused = {
    code: "RATE_LIMITED",
    message: /4 large documents of this user/,
    detail: { retry_after_seconds: 1 },
  };
  await assert.rejects(busy.read(SOON, { user: "one" }), refused);
  assert.equal((await busy.read(SOON, { user: "two" })).document?.path, "large/one");
  await Promise.all(mine);
  assert.equal((await busy.read(SOON, { user: "one" })).document?.path, "large/one");
  await busy.close();
});

test("two texts are read at a time: one that takes long keeps nothing else from being read, and two do", async () => {
  const busy = createDocuments({ file: ENDING });
  const never = [1, 2].map(() => assert.rejects(busy.read(NEVER), { code: "UNAVAILABLE", message: /stopping/ }));
  const third = assert.rejects(busy.read(SOON), { code: "UNAVAILABLE", message: /stopping/ });
  // Read at once: no thread is needed.
  assert.equal((await busy.read(playbook(1))).document?.path, "large/one");
  await busy.close();
  await Promise.all([...never, third]);
});

test("a thread that ends is an error for its own text, and another thread reads the others", async () => {
  const ending = createDocuments({ file: ENDING, threadMb: 64 });
  const large = (text: string) => ending.read(padded(`${playbook(1)}# ${text}\n`, AT_ONCE_MAX + 1));
  const ends = (why: RegExp) => ({ code: "UNAVAILABLE", message: why });
  await Promise.all([
    assert.rejects(large("ends: by a fault"), ends(/ended: a fault of the thread\. Try again/)),
    assert.doesNotReject(large("one")),
    assert.rejects(large("ends: by itself"), ends(/ended: exit code 7/)),
    assert.rejects(large("ends: without memory"), ends(/ended: .*memory/)),
    assert.doesNotReject(large("two")),
  ]);
  await ending.close();
});

test("a thread that cannot begin is an error", async () => {
  const none = createDocuments({ file: new URL("./support/no-such-file.js", import.meta.url) });
  const large = padded(playbook(1), AT_ONCE_MAX + 1);
  for (const _ of [1, 2]) await assert.rejects(none.read(large), { code: "UNAVAILABLE" });
  await none.close();
});

test("closing fails the waiting calls, and no large document is read afterwards", async () => {
  const closing = createDocuments({ threads: 1 });
  const large = padded(playbook(1), AT_ONCE_MAX + 1);
  const told = Promise.all([1, 2].map(() => assert.rejects(closing.read(large), { code: "UNAVAILABLE" })));
  await closing.close();
  await told;
  await assert.rejects(closing.read(large), { code: "UNAVAILABLE", message: /the server is stopping/ });
  await closing.close();
});
