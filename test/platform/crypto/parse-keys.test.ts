import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { parseKeys } from "../../../src/platform/crypto/parse-keys.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";

const random = () => randomBytes(32);
const entry = (id: string, key: Buffer) => `${id}:${key.toString("base64")}`;

function problems(text: string): string {
  try {
    parseKeys(text, "the keys");
  } catch (error) {
    assert.ok(error instanceof FlowError && error.code === "INVALID_SETTING");
    return error.message;
  }
  throw new assert.AssertionError({ message: "these keys were taken" });
}

test("keys are read comma-separated or one per line, in both alphabets of base64, with comments left out", () => {
  const [one, two, three] = [random(), random(), random()];
  const text = `# since 2026\n${entry("k3", one)},  k-2:${two.toString("base64url")}\n\n${entry("k_1", three)}\n`;
  assert.deepEqual(parseKeys(text, "x"), [
    { id: "k3", key: one },
    { id: "k-2", key: two },
    { id: "k_1", key: three },
  ]);
});

const SAME = random();
for (const [what, text, message] of [
  ["none", " ,\n", /holds no key; write <id>:<key>, and make one with: openssl rand -base64 32/],
  ["an empty one", "k1:", /key 1 \('k1'\) has 0 bytes, not 32/],
  ["one without an id", random().toString("base64"), /key 1 is not of the form <id>:<base64>/],
  ["one with an odd id", entry("k.1", random()), /needs an id of 1 to 64 letters/],
  ["one that is too short", entry("k1", randomBytes(16)), /has 16 bytes, not 32/],
  ["one that is too long", entry("k1", randomBytes(64)), /has 64 bytes, not 32/],
  ["one that is no base64", `k1:${"*".repeat(44)}`, /is not base64/],
  ["all zero", entry("k1", Buffer.alloc(32)), /no random key but a default/],
  ["one byte repeated", entry("k1", Buffer.alloc(32, 0xa5)), /no random key/],
  ["a word repeated", entry("k1", Buffer.alloc(32, "deadbeef", "hex")), /no random key/],
  ["counting up", entry("k1", Buffer.from(Array.from({ length: 32 }, (_, at) => at))), /no random key/],
  ["readable text", entry("k1", Buffer.from("Change-me: 0123456789, Password!")), /no random key/],
  ["an id twice", `${entry("k1", random())},${entry("k1", random())}`, /key 2 has the id 'k1' of an earlier key/],
  ["a key twice", `${entry("k1", SAME)},${entry("k2", SAME)}`, /\('k2'\) is the same key as 'k1'/],
] as const) {
  test(`keys are refused: ${what}`, () => {
    assert.match(problems(text), message);
  });
}

test("every problem is reported at once, without showing a key", () => {
  const short = randomBytes(20);
  const said = problems(`${entry("k1", short)},${entry("k2", Buffer.alloc(32))},nothing`);
  assert.match(said, /key 1 .*key 2 .*key 3 /s);
  assert.ok(!said.includes(short.toString("base64")));
});

test("a setting with such a key stops the program before it does anything, and its text is not shown", () => {
  const zero = Buffer.alloc(32).toString("base64");
  assert.throws(
    () => loadConfig({ FLOW_ENCRYPTION_KEYS: `k1:${zero}` }),
    (error: Error) => /FLOW_ENCRYPTION_KEYS: key 1/.test(error.message) && !error.message.includes(zero),
  );
});
