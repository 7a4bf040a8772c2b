import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createSecrets, openSealed } from "../../../src/engine/sealing/secrets.ts";
import { createSealer } from "../../../src/platform/crypto/sealing.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import { leavesOf, VALUE } from "../support/json-values.ts";

const sealer = createSealer([{ id: "k1", key: Buffer.alloc(32, 7) }]);

function noted(...values: Json[]) {
  const secrets = createSecrets();
  for (const value of values) secrets.note(value);
  return secrets;
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

// Each way in which a secret may be written, and what is left of the text.
const AWKWARD = `pa"ss/w'ör d\\1&=+%2F`;
for (const [what, text, shown] of [
  ["as it is", `<${AWKWARD}>`, "<[secret]>"],
  ["percent-encoded", `?t=${encodeURIComponent(AWKWARD)}&u=1`, "?t=[secret]&u=1"],
  [
    "percent-encoded, the slash left",
    `/${encodeURIComponent(AWKWARD).replaceAll("%2F", "/").replaceAll("'", "%27")}/x`,
    "/[secret]/x",
  ],
  [
    "percent-encoded in lower case",
    encodeURIComponent(AWKWARD).replace(/%../g, (code) => code.toLowerCase()),
    "[secret]",
  ],
  ["percent-encoded twice", encodeURIComponent(encodeURIComponent(AWKWARD)), "[secret]"],
  ["as a form field", new URLSearchParams({ t: AWKWARD, u: "1" }).toString(), "t=[secret]&u=1"],
  ["in JSON", JSON.stringify({ t: AWKWARD }), '{"t":"[secret]"}'],
  ["in JSON within JSON", JSON.stringify(JSON.stringify({ t: AWKWARD })), '"{\\"t\\":\\"[secret]\\"}"'],
  ["in ASCII-only JSON", JSON.stringify({ t: AWKWARD }).replace("ö", "\\u00f6"), '{"t":"[secret]"}'],
  ["in Python's way", `'${AWKWARD.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`, "'[secret]'"],
  ["in a shell's quotes", `'${AWKWARD.replaceAll("'", "'\\''")}'`, "'[secret]'"],
  ["in base64", `x ${base64(AWKWARD)} y`, "x [secret] y"],
] as const) {
  test(`a secret is hidden ${what}`, () => assert.equal(noted(AWKWARD).hide(text), shown));
}

test("a password is hidden in the base64 of any user's name and password, and of a text around it", () => {
  const secrets = noted("hunter22-and-more");
  for (const user of ["a", "bo", "joe", "anna"]) {
    const hidden = secrets.hide(`Basic ${base64(`${user}:hunter22-and-more`)}`);
    assert.match(hidden, /^Basic [\w+/]{0,8}\[secret\][\w+/]?={0,2}$/, hidden);
    assert.ok(
      !Buffer.from(hidden.slice(6).split("[")[0] ?? "", "base64")
        .toString()
        .includes("hu"),
      hidden,
    );
  }
  assert.equal(
    noted({ username: "joe", password: "hunter22" }).hide(`Basic ${base64("joe:hunter22")}`),
    "Basic [secret]",
  );
});

test("overlapping secrets are hidden whole, also the longer of two with the same beginning", () => {
  assert.equal(noted("abcdefghij", "defghijkl").hide("-abcdefghijkl-"), "-[secret]-");
  assert.equal(noted("hunter22", "hunter22-and-more").hide("hunter22-and-more, hunter22"), "[secret], [secret]");
  assert.equal(noted("aaaaaaaa").hide("aaaaaaaaaaa"), "[secret]");
});

test("a number is a secret from four digits on: as a number, and in a text where it stands alone", () => {
  const secrets = noted({ pin: 4711, small: 12, rate: 0.5, flag: true });
  assert.deepEqual(secrets.hideIn({ pin: 4711, other: 47110, small: 12 }), {
    pin: "[secret]",
    other: 47110,
    small: 12,
  });
  assert.equal(secrets.hide("pin 4711, not 47110 or 14711"), "pin [secret], not 47110 or 14711");
  assert.deepEqual(noted("123456").hideIn({ n: 123456 }), { n: "[secret]" }, "digits of a text are one too");
});

test("the password of an address and the fields of a JSON text are secrets by themselves", () => {
  const address = noted("postgres://joe:p%40ssw0rd@db.internal/orders");
  assert.equal(
    address.hide("p@ssw0rd and p%40ssw0rd for joe at db.internal"),
    "[secret] and [secret] for joe at db.internal",
  );
  assert.equal(noted(JSON.stringify({ a: [{ b: "hunter22" }] })).hide("b is hunter22"), "b is [secret]");
});

test("each line of a multi-line secret is a secret, except for its armour", () => {
  const secrets = noted("-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nshort\n-----END KEY-----\n");
  assert.equal(secrets.hide("MIIEvQIBADANBgkq"), "[secret]");
  assert.equal(secrets.hide("-----BEGIN KEY----- short"), "-----BEGIN KEY----- short");
});

test("fields with public names are not secret, except for the password in an address", () => {
  const secrets = createSecrets();
  secrets.note(
    { url: "nats://joe:hunter22@broker", user: "postgres", password: "swordfish" },
    { except: /^(url|user)$/, addresses: /^url$/ },
  );
  assert.equal(
    secrets.hide("nats://joe:hunter22@broker postgres swordfish"),
    "nats://joe:[secret]@broker postgres [secret]",
  );
});

test("a text that was cut off within a secret loses the rest of the secret", () => {
  const secrets = noted("hunter22-and-more");
  assert.equal(secrets.hideCut("hunter22-and-more hunter22-an"), "[secret] [secret]");
  assert.equal(secrets.hideCut("nothing hun"), "nothing hun");
});

test("values are sealed in their places and open again, keys stay unchanged; values without secrets are not copied", () => {
  const secrets = noted({ token: "hunter22", pin: 47114711 });
  const value = { header: "Bearer hunter22", list: [47114711, 1, null, true], hunter22: { deep: ["x"] } };
  const sealed = secrets.seal(value, sealer) as typeof value;
  assert.doesNotMatch(JSON.stringify(Object.values(sealed)), /hunter22|47114711/);
  assert.deepEqual(Object.keys(sealed), Object.keys(value));
  assert.match(sealed.header, /^Bearer \[sealed:k1:[\w-]+\]$/);
  assert.deepEqual(Object.keys(secrets.hideIn(value) as object), Object.keys(value));
  const opening = createSecrets();
  assert.deepEqual(openSealed(sealed, sealer, opening), value);
  assert.equal(
    opening.hide("hunter22 47114711"),
    "[secret] [secret]",
    "what was opened is a secret of whoever opens it",
  );
  const other = { a: ["b", { c: 1 }] };
  assert.equal(secrets.seal(other, sealer), other);
  assert.equal(openSealed(other, sealer, opening), other);
  const mixed = secrets.seal({ same: other, changed: "hunter22" }, sealer) as { same: unknown };
  assert.equal(mixed.same, other);
});

test("a variant is sealed as it was written, and opens as that", () => {
  const secrets = noted(AWKWARD);
  const value = { url: `https://h/?t=${encodeURIComponent(AWKWARD)}`, basic: base64(`joe:${AWKWARD}`) };
  assert.deepEqual(openSealed(secrets.seal(value, sealer), sealer, createSecrets()), value);
});

test("a text of an author that looks sealed stays unchanged", () => {
  const value = { a: "[sealed:k1:abc]", b: "see [sealed:] and [sealed:k9:AAAA]" };
  assert.deepEqual(openSealed(value, sealer, createSecrets()), value);
});

test("a key called __proto__ stays a field", () => {
  const value = JSON.parse('{"__proto__": "hunter22", "a": 1}') as Json;
  const sealed = noted("hunter22").seal(value, sealer);
  assert.equal(Object.getPrototypeOf(sealed), Object.prototype);
  assert.deepEqual(openSealed(sealed, sealer, createSecrets()), value);
});

test("a search costs about the same for ten thousand secrets as for ten", () => {
  const text = Array.from({ length: 20_000 }, (_, index) => `row ${index} of some text that holds no secret`).join(
    "\n",
  );
  const few = createSecrets();
  const many = createSecrets();
  for (let index = 0; index < 10_000; index += 1) {
    (index < 10 ? few : many).note(`secret-${(index * 7919).toString(36)}-of-many`);
  }
  const cost = (secrets: ReturnType<typeof createSecrets>) => {
    const times = Array.from({ length: 5 }, () => {
      const start = performance.now();
      assert.equal(secrets.isIn(text), false);
      return performance.now() - start;
    });
    return Math.min(...times);
  };
  cost(few);
  const ratio = cost(many) / cost(few);
  // Most of what the many cost more is the filter, which lets more places through.
  assert.ok(ratio < 30, `${ratio}`);
});

test("a secret of fewer than eight characters is hidden as a whole word, in text for people, and never sealed", () => {
  const secrets = noted({ user: "demo", password: "demo", pin: 4711, seven: "a1b2c3d" });
  assert.equal(
    secrets.hide("demo: user demo, demographics_done, my_demo, demo4, -demo- 4711 47110 a1b2c3d a1b2c3de"),
    "[secret]: user [secret], demographics_done, my_demo, demo4, -[secret]- [secret] 47110 [secret] a1b2c3de",
  );
  const value = { demographics_done: 4711, demo: "demo", text: "demographics of demo", list: ["a1b2c3d", 4711] };
  assert.equal(secrets.seal(value, sealer), value);
  assert.equal(secrets.sealGiven(value, sealer), value);
  assert.equal(secrets.isIn(value), false);
  assert.deepEqual(secrets.hideIn(value), {
    demographics_done: "[secret]",
    demo: "[secret]",
    text: "demographics of [secret]",
    list: ["[secret]", "[secret]"],
  });
  // One character more, and it is a secret wherever it stands.
  const longer = noted("demograp");
  assert.equal(longer.hide("demographics"), "[secret]hics");
  assert.equal(longer.isIn("demographics"), true);
});

test("for any secrets and any JSON, a later step reads the tool's exact result, and its keys never change", () => {
  let sealedCount = 0;
  fc.assert(
    fc.property(
      fc.array(VALUE, { maxLength: 2 }),
      VALUE,
      fc.array(fc.nat(9), { maxLength: 2 }),
      (given, value, picks) => {
        // Some of what the tool gave is a secret by itself, or the begin of one of its texts.
        const leaves = leavesOf(value);
        const picked = picks.map((pick) => leaves[pick % Math.max(1, leaves.length)] ?? null);
        const begun = picked.map((leaf) => (typeof leaf === "string" ? leaf.slice(0, 9) : leaf));
        const secrets = noted(...given, ...picked, ...begun);
        const before = JSON.stringify(value);
        const sealed = secrets.seal(value, sealer);
        assert.equal(JSON.stringify(value), before, "sealing changes nothing but its answer");
        assert.equal(secrets.isIn(value), sealed !== value);
        if (sealed !== value) sealedCount += 1;
        const kept = JSON.parse(JSON.stringify(sealed)) as Json;
        assert.equal(JSON.stringify(openSealed(kept, sealer, createSecrets())), before);
        assert.deepEqual(keysOf(sealed), keysOf(value));
      },
    ),
    { numRuns: 5_000 },
  );
  assert.ok(sealedCount > 300, `in ${sealedCount} values something was sealed`);
});

function keysOf(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(keysOf);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...keysOf(inner as Json)]);
}
