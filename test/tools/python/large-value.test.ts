import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Json } from "../../../src/schema/words/json.ts";
import { largeResult, outlineOf } from "../../../src/tools/python/large-value.ts";
import { pythonCall, testTool } from "../python-call.ts";

const tool = testTool();
after(() => tool.close?.());

const LONG = "x".repeat(40_000);

/** The outline of a text. */
function outline(text: string): Json | undefined {
  return outlineOf(Buffer.from(text))?.outline;
}

test("the outline of a large text has everything but its long texts", () => {
  const value = { a: 1, long: LONG, b: { c: [LONG, "short", null, -0.5] }, d: "y".repeat(256), e: "y".repeat(257) };
  const { outline, text } = outlineOf(Buffer.from(JSON.stringify(value))) ?? {};
  assert.deepEqual(outline, { a: 1, long: [], b: { c: [[], "short", null, -0.5] }, d: value.d, e: [] });
  assert.equal(Buffer.from(text ?? []).toString(), JSON.stringify(value));
  assert.deepEqual(outlineOf(Buffer.from(JSON.stringify(LONG)))?.outline, []);
});

test("texts are outlined from 32,768 bytes on", () => {
  const text = (bytes: number) => JSON.stringify("x".repeat(bytes - 2));
  assert.deepEqual(
    [32_767, 32_768, 32_769].map((bytes) => outline(text(bytes))),
    [undefined, [], []],
  );
  assert.equal(outline(""), undefined);
});

test("a text that would be written in another way is not outlined", () => {
  const texts = {
    "a number as Python writes it": `{"a":1.0,"b":"${LONG}"}`,
    "an exponent": `{"a":1e+16,"b":"${LONG}"}`,
    "a negative zero": `{"a":-0.0,"b":"${LONG}"}`,
    "a number beyond all": `{"a":1e999,"b":"${LONG}"}`,
    "a key twice": `{"a":1,"a":2,"b":"${LONG}"}`,
    "a long text twice under a key": `{"a":"${LONG}","a":"${LONG}"}`,
    "keys in another order than objects have": `{"b":"${LONG}","2":1,"1":2}`,
    spaces: `{"a": "${LONG}"}`,
    "an escape": `{"a":"${LONG}\\n"}`,
    "a NUL": `{"a":"${LONG}\\u0000"}`,
    "half a character": `{"a":"${LONG}\\ud83d"}`,
    "what is not ASCII": `{"a":"${LONG}é"}`,
    "a long key": `{"${"k".repeat(257)}":"${LONG}"}`,
    "more than an outline may have": `["${LONG}",${"1,".repeat(8_200)}1]`,
    "many texts": `["${LONG}"${',"ab"'.repeat(1_025)}]`,
  };
  for (const [what, text] of Object.entries(texts)) assert.equal(outline(text), undefined, what);
});

test("what is no JSON is not outlined, or nested too deep", () => {
  const broken = [
    `{"a":NaN,"b":"${LONG}"}`,
    `{"a":"${LONG}"`,
    `{"a":"${LONG}}`,
    `"${LONG}" 1`,
    `"${LONG}""`,
    LONG,
    `"${LONG}`,
  ];
  for (const text of broken) assert.equal(outline(text), undefined, text.slice(-20));
  assert.equal(outlineOf(Buffer.concat([Buffer.from(`"${LONG}`), Buffer.from([0xff, 0xfe, 0x22])])), undefined);
  const nested = (depth: number) => `${"[".repeat(depth)}"${LONG}"${"]".repeat(depth)}`;
  assert.notEqual(outline(nested(419)), undefined);
  assert.equal(outline(nested(421)), undefined);
});

test("the value of a large result is parsed once, when it is asked for", () => {
  const large = outlineOf(Buffer.from(JSON.stringify({ a: LONG })));
  assert.ok(large !== undefined);
  const result = largeResult(large);
  assert.deepEqual(result.data, { a: LONG });
  assert.equal(result.data, result.data);
});

test("a large result of a task comes as its text, and has its value; others have their value alone", async () => {
  const run = async (code: string, size: number) => await tool.run(pythonCall(code, { input: { size } }));
  const large = await run("result = {'n': 1, 'text': 'x' * size}", 100_000);
  assert.deepEqual(large.large?.outline, { n: 1, text: [] });
  assert.deepEqual(large.data, { n: 1, text: "x".repeat(100_000) });
  const odd = await run("result = {'n': 1.0, 'text': 'x' * size}", 100_000);
  assert.equal(odd.large, undefined);
  assert.deepEqual(odd.data, { n: 1, text: "x".repeat(100_000) });
  assert.equal((await run("result = {'n': 1, 'text': 'x' * size}", 100)).large, undefined);
  const failed = await run("raise ValueError('x' * size)", 100_000);
  assert.deepEqual([failed.status, failed.large], ["error", undefined]);
});

test("code that answers in place of the harness with a large text that is no JSON loses its interpreter", async () => {
  const text = `{"type":"done","retire":false,"value":{"a":"${LONG}"x}}`;
  const code = `text = ${JSON.stringify(text)}.encode()\nos.write(3, len(text).to_bytes(4, 'big') + text)\nwhile True: pass`;
  const { error } = await tool.run(pythonCall(code));
  assert.equal(error?.code, "INTERPRETER_LOST");
});
