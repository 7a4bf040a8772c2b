import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { NamedKey } from "../../../src/platform/crypto/key-ring.ts";
import { createSealer, sealingKeys } from "../../../src/platform/crypto/sealing.ts";
import { maskSealed, SEALED } from "../../../src/schema/words/sealed.ts";
import { keyRing } from "../../support/engine/key-ring.ts";

const key = (id: string): NamedKey => ({ id, key: randomBytes(32) });
const K1 = key("k1");

const VALUES = [
  "hunter22",
  "",
  "ü€ \u0000 \ud800 half a character",
  '"quoted" \\ [sealed:',
  1234,
  -0.5,
  "x".repeat(100_000),
];

test("a sealed text or number opens as what it was", () => {
  const sealer = createSealer([K1]);
  for (const value of VALUES) {
    const sealed = sealer.seal(value);
    assert.match(sealed, /^\[sealed:k1:[\w-]{59,}\]$/);
    assert.deepEqual(sealer.open(sealed), { kind: "value", value });
  }
});

test("a sealed result opens as its JSON text, and as no value", () => {
  const sealer = createSealer([K1]);
  const json = JSON.stringify({ big: "x".repeat(5_000_000) });
  assert.deepEqual(sealer.open(sealer.sealResult(json)), { kind: "result", json });
  assert.deepEqual(sealer.open(sealer.seal(json)), { kind: "value", value: json });
});

test("equal texts are sealed to equal texts, other texts and other trees are not", () => {
  const ring = keyRing();
  const [one, again, other] = ["7", "7", "8"].map((root) => createSealer(sealingKeys(ring, root)));
  assert.equal(one?.seal("hunter22"), again?.seal("hunter22"));
  assert.notEqual(one?.seal("hunter22"), one?.seal("hunter23"));
  assert.notEqual(one?.seal("1234"), one?.seal(1234));
  assert.notEqual(one?.seal("hunter22"), other?.seal("hunter22"));
});

test("the length of a sealed text does not reveal a password's length", () => {
  const { seal } = createSealer([K1]);
  assert.equal(new Set(["a", "abcd", "hunter22", "0123456789abc"].map((text) => seal(text).length)).size, 1);
});

test("the first key seals, and all of them open", () => {
  const K2 = key("k2");
  const before = createSealer([K1]).seal("old");
  const rotated = createSealer([K2, K1]);
  assert.deepEqual(rotated.open(before), { kind: "value", value: "old" });
  assert.match(rotated.seal("new"), /^\[sealed:k2:/);
  assert.equal(createSealer([K1]).open(rotated.seal("new")), undefined);
});

test("after a change of keys a tree seals with the new one and opens what the old one sealed", () => {
  const before = createSealer(sealingKeys(keyRing("k1"), "7"));
  const between = createSealer(sealingKeys(keyRing("k1", "k2"), "7"));
  const after = createSealer(sealingKeys(keyRing("k2", "k1"), "7"));
  assert.equal(between.seal("hunter22"), before.seal("hunter22"));
  assert.match(after.seal("hunter22"), /^\[sealed:k2:/);
  for (const one of [before, between, after]) {
    for (const other of [between, after]) {
      assert.deepEqual(other.open(one.seal("hunter22")), { kind: "value", value: "hunter22" });
    }
  }
});

test("what does not open is undefined, and no error: other trees' texts, changed ones, texts that only look sealed", () => {
  const sealer = createSealer([K1]);
  const sealed = sealer.seal("hunter22");
  const middle = Math.floor(sealed.length / 2);
  const flipped = sealed[middle] === "A" ? "B" : "A";
  const odd = [
    createSealer([{ id: "k1", key: randomBytes(32) }]).seal("hunter22"),
    sealed.slice(0, middle) + flipped + sealed.slice(middle + 1),
    sealed.replace("k1", "k2"),
    `${sealed} and more`,
    sealed.slice(0, -3),
    "[sealed:k1:]",
    "[sealed:k1:AAAA]",
    `[sealed:k1:${"A".repeat(59)}]`,
    "[sealed:",
    "",
  ];
  for (const text of odd) assert.equal(sealer.open(text), undefined, text);
});

test("people see a mask: of each sealed text, within JSON, and of one that was cut off", () => {
  const { seal, sealResult } = createSealer([K1]);
  const json = JSON.stringify({ a: `Bearer ${seal("one")}, ${seal("two")}`, b: [seal(1234)], c: 1 });
  assert.equal(maskSealed(json), '{"a":"Bearer [secret], [secret]","b":["[secret]"],"c":1}');
  assert.equal(maskSealed(seal("hunter22").slice(0, 30)), "[secret]");
  assert.equal(maskSealed("nothing [sealed] here"), "nothing [sealed] here");
  assert.equal(maskSealed(`"${sealResult("x".repeat(10_000_000))}"`), '"[secret]"');
  assert.equal(`${seal("one")}.${seal("two")}`.replace(SEALED, "·"), "·.·");
});
