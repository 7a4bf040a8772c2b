import assert from "node:assert/strict";
import { after, test } from "node:test";
import { pythonCall, testTool } from "../python-call.ts";

const tool = testTool();
after(() => tool.close?.());

const CASES: [code: string, value: unknown][] = [
  ["datetime.datetime(2024, 1, 2, 3, 4, 5)", "2024-01-02T03:04:05"],
  ["datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc)", "2024-01-02T00:00:00+00:00"],
  ["datetime.date(2024, 1, 2)", "2024-01-02"],
  ["datetime.time(3, 4)", "03:04:00"],
  ["datetime.timedelta(minutes=1.5)", 90],
  ["__import__('decimal').Decimal('1.50')", 1.5],
  ["__import__('decimal').Decimal('2')", 2],
  ["__import__('decimal').Decimal('NaN')", null],
  ["__import__('decimal').Decimal('12345678901234567890')", "12345678901234567890"],
  ["uuid.UUID(int=1)", "00000000-0000-0000-0000-000000000001"],
  ["{3, 1, 2}", [1, 2, 3]],
  ["frozenset('a')", ["a"]],
  ["(1, (2,))", [1, [2]]],
  ["b'text'", "text"],
  ["b'\\xff\\x00'", "/wA="],
  ["__import__('pathlib').PurePosixPath('/a/b')", "/a/b"],
  ["[float('nan'), float('inf'), -float('inf'), 1.5]", [null, null, null, 1.5]],
  ["[2**53 - 1, 2**53, -2**60]", [9007199254740991, "9007199254740992", "-1152921504606846976"]],
  ["0.1 + 0.2", 0.1 + 0.2],
  ["{1: 'a', None: 'b', True: 'c', (datetime.date(2024, 1, 2)): 'd'}", { "1": "c", null: "b", "2024-01-02": "d" }],
  ["{'k': {1}}.values()", [[1]]],
  ["{'k': 1}.keys()", ["k"]],
  ["range(3)", [0, 1, 2]],
  ["__import__('collections').deque([1])", [1]],
  ["__import__('collections').OrderedDict(a={1})", { a: [1] }],
  ["__import__('enum').Enum('Color', 'RED')(1)", 1],
  ["__import__('array').array('i', [1, 2])", [1, 2]],
  ["type('Scalar', (), {'item': lambda self: 7})()", 7],
  ["type('Model', (), {'model_dump': lambda self: {'a': {1}}})()", { a: [1] }],
  ["__import__('dataclasses').make_dataclass('P', ['x'])({1})", { x: [1] }],
  ["'\\ud800 \\u00e9 \\U0001F600'", "\ud800 é 😀"],
  ["{'__proto__': {'polluted': 1}}", JSON.parse('{"__proto__": {"polluted": 1}}')],
];

for (const [code, value] of CASES) {
  test(`the result ${code} is ${JSON.stringify(value)}`, async () => {
    const result = await tool.run(pythonCall(`result = ${code}`));
    assert.equal(result.status, "ok", result.error?.message);
    assert.deepEqual(result.data, value);
  });
}

const REFUSED: [code: string, message: RegExp][] = [
  ["{'rows': [1, {'when': object()}]}", /result\['rows'\]\[1\]\['when'\] is of type object, which has no JSON form/],
  ["(i for i in [])", /result is of type generator/],
  ["int", /result is of type type/],
  ["{(1, 2): 3}", /result has a key of type tuple; keys must be text/],
];

for (const [code, message] of REFUSED) {
  test(`the result ${code} is refused with its type and place`, async () => {
    const result = await tool.run(pythonCall(`result = ${code}`));
    assert.equal(result.status, "error");
    assert.equal(result.error?.code, "RESULT_NOT_JSON");
    assert.equal(result.error?.kind, "client_error");
    assert.match(result.error?.message ?? "", message);
  });
}

test("a result that contains itself, or is too deep, is refused", async () => {
  const circle = await tool.run(pythonCall("a = {}\na['b'] = [a]\nresult = a"));
  assert.match(circle.error?.message ?? "", /result\['b'\]\[0\] contains itself/);
  const deep = await tool.run(pythonCall("result = []\nfor _ in range(100000): result = [result]"));
  assert.match(deep.error?.message ?? "", /nested too deeply/);
});

test("the same value twice is no circle", async () => {
  const result = await tool.run(pythonCall("a = {1}\nresult = [a, a]"));
  assert.deepEqual(result.data, [[1], [1]]);
});

test("an integer with more digits than Python prints is text or refused, never wrong", async () => {
  const result = await tool.run(pythonCall("result = 10 ** 5000"));
  if (result.status === "ok") assert.equal(result.data, `1${"0".repeat(5000)}`);
  else assert.match(result.error?.message ?? "", /thousands of digits/);
});

test("an integer too long for a number is found behind any text, and digits within a text are left alone", async () => {
  const odd = [
    "",
    '"',
    "\\",
    '\\"',
    '\\\\"',
    '"\\',
    "1".repeat(16),
    '"'.repeat(17),
    "x".repeat(5_000),
    "\n\u0001é",
    "]},:",
  ];
  const code = "long = [2**60, -2**60, 2**53 - 1]\nresult = [[t, long, {t: long}, 0.1234567890123456] for t in texts]";
  for (const times of [1, 400]) {
    for (const texts of [...odd.map((text) => [text]), odd]) {
      const many = Array.from({ length: times }, () => texts).flat();
      const result = await tool.run(pythonCall(code, { input: { texts: many } }));
      const long = ["1152921504606846976", "-1152921504606846976", 9_007_199_254_740_991];
      const expected = many.map((text) => [text, long, { [text]: long }, 0.1234567890123456]);
      assert.deepEqual(result.data, expected);
    }
  }
});

test("5 MB go in and come back unchanged", async () => {
  const rows = Array.from({ length: 50_000 }, (_, id) => ({ id, name: `naïve – 名前 ${id}`, text: "x".repeat(60) }));
  const result = await tool.run(pythonCall("result = rows", { input: { rows } }));
  assert.deepEqual(result.data, rows);
});

test("long texts come back as they are: of any length, with any character, alone and among other fields", async () => {
  const odd = ["", '"', "\\", "\n", "\0", "\u001f", " ", "~", "\u007f", "\u0080", "é", "名", "😀", "\ud83d", "\u2028"];
  const texts = [1_023, 1_024, 1_025, 5_000].flatMap((length) =>
    odd.map((end) => "x".repeat(length - end.length) + end),
  );
  const alone = await Promise.all(texts.map((text) => tool.run(pythonCall("result = text", { input: { text } }))));
  for (const [index, { data }] of alone.entries()) assert.equal(data, texts[index]);
  const long = "y".repeat(2_000);
  const code = "result = {'a': long, 'b\"\\u00e9': text, 'c': [2**60, float('nan'), {1}], 'd': long, 'e': {'f': text}}";
  for (const text of texts) {
    const { data } = await tool.run(pythonCall(code, { input: { long, text } }));
    const c = ["1152921504606846976", null, [1]];
    assert.deepEqual(data, { a: long, 'b"é': text, c, d: long, e: { f: text } });
    assert.deepEqual(Object.keys(data as object), ["a", 'b"é', "c", "d", "e"]);
  }
});

test("a dict of many long texts comes back, and one with keys of any type", async () => {
  for (const count of [1, 63, 64, 65, 700]) {
    const code = "result = {str(n): chr(97 + n % 26) * 1500 for n in range(count)}";
    const { data } = await tool.run(pythonCall(code, { input: { count } }));
    const expected = Array.from({ length: count }, (_, n) => [n, String.fromCharCode(97 + (n % 26)).repeat(1_500)]);
    assert.deepEqual(data, Object.fromEntries(expected));
  }
  const { data } = await tool.run(pythonCall("result = {1: 'z' * 2000, None: 'b'}"));
  assert.deepEqual(data, { "1": "z".repeat(2_000), null: "b" });
});

test("what has no JSON form beside a long text is refused with its place", async () => {
  const beside = async (item: string) => {
    const { error } = await tool.run(pythonCall(`a = {'long': 'x' * 2000}\na['b'] = ${item}\nresult = a`));
    return error?.message ?? "";
  };
  assert.match(await beside("[object()]"), /result\['b'\]\[0\] is of type object/);
  assert.match(await beside("{(1, 2): 3}"), /result\['b'\] has a key of type tuple/);
  assert.match(await beside("[a]"), /result\['b'\]\[0\] contains itself/);
});

test("a result of 64 MiB is taken, and one byte more refused", async () => {
  // With its quotation marks.
  const most = 64 * 1_024 * 1_024;
  for (const around of [2, '{"a":""}'.length]) {
    const value = around === 2 ? "text" : "{'a': text}";
    const code = `text = 'x' * size\nresult = ${value}`;
    const taken = await tool.run(pythonCall(code, { input: { size: most - around } }));
    assert.equal(JSON.stringify(taken.data)?.length, most);
    const refused = await tool.run(pythonCall(code, { input: { size: most - around + 1 } }));
    assert.equal(refused.error?.code, "RESULT_TOO_LARGE");
    assert.match(refused.error?.message ?? "", /67108865 bytes of JSON/);
  }
});

test("a result over 64 MiB is refused with its size", async () => {
  const result = await tool.run(pythonCall("result = 'x' * (65 * 1024 * 1024)"));
  assert.equal(result.error?.code, "RESULT_TOO_LARGE");
  assert.match(result.error?.message ?? "", /68157442 bytes of JSON/);
});

test("text of every kind survives the way in and out", async () => {
  const text = `quote " backslash \\ newline \n nul \0 é 名 😀 lone \ud83d ${"\u2028"}`;
  const result = await tool.run(pythonCall("result = [text, len(text)]", { input: { text } }));
  assert.deepEqual((result.data as unknown[])[0], text);
});
