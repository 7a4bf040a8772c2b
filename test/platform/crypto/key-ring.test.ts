import assert from "node:assert/strict";
import { test } from "node:test";
import { createKeyRing } from "../../../src/platform/crypto/key-ring.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { keyRing } from "../../support/engine/key-ring.ts";

const BOUND = "flow.credential\npg_demo\n1";

const refused = (message: RegExp) => (error: unknown) =>
  error instanceof FlowError && error.code === "ENCRYPTION" && message.test(error.message);

test("what was encrypted is decrypted again, text as bytes, and the envelope names its key", () => {
  const ring = keyRing("k2", "k1");
  for (const plain of ["", "a password: ü", Buffer.from([0, 255, 10])]) {
    const envelope = ring.encrypt(plain, BOUND);
    assert.match(envelope, /^flow1\.k2\.[\w-]+\.[\w-]+$/);
    assert.equal(ring.keyIdOf(envelope), "k2");
    assert.deepEqual(ring.decrypt(envelope, BOUND), Buffer.from(plain));
  }
});

test("the same text gives another envelope each time, and neither holds it", () => {
  const ring = keyRing();
  const [one, two] = [ring.encrypt("canary", BOUND), ring.encrypt("canary", BOUND)];
  assert.notEqual(one, two);
  assert.ok(!one.includes(Buffer.from("canary").toString("base64url")));
});

test("an older key of the ring still decrypts, the first one encrypts", () => {
  const old = keyRing("k1").encrypt("secret", BOUND);
  const ring = keyRing("k2", "k1");
  assert.equal(ring.decrypt(old, BOUND).toString(), "secret");
  assert.deepEqual([ring.current, ring.ids], ["k2", ["k2", "k1"]]);
});

test("a key that is not in the ring is named, and what to do", () => {
  const envelope = keyRing("k1").encrypt("secret", BOUND);
  assert.throws(
    () => keyRing("k2").decrypt(envelope, BOUND),
    refused(/with the key 'k1'.*has k2.*FLOW_ENCRYPTION_KEYS/),
  );
});

test("another key under the same name decrypts nothing", () => {
  const envelope = keyRing("k1").encrypt("secret", BOUND);
  const other = createKeyRing([{ id: "k1", key: Buffer.alloc(32, 7) }]);
  assert.throws(() => other.decrypt(envelope, BOUND), refused(/the key named 'k1' differs from the one used then/));
});

test("an envelope of one row decrypts under no other table, name or id", () => {
  const ring = keyRing();
  const envelope = ring.encrypt("secret", BOUND);
  for (const bound of ["flow.keychain\npg_demo\n1", "flow.credential\npg_demo\n2", ""]) {
    assert.throws(() => ring.decrypt(envelope, bound), refused(/belongs to another row/));
  }
});

test("an envelope with the name of another key of the ring decrypts nothing", () => {
  const ring = keyRing("k2", "k1");
  const envelope = ring.encrypt("secret", BOUND).replace("flow1.k2.", "flow1.k1.");
  assert.throws(() => ring.decrypt(envelope, BOUND), refused(/differs from the one used then/));
});

test("no byte of an envelope can be changed", () => {
  const ring = keyRing();
  const envelope = ring.encrypt("secret", BOUND);
  const [, , wrapped = "", data = ""] = envelope.split(".");
  for (const part of [wrapped, data]) {
    const bytes = Buffer.from(part, "base64url");
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      const text = envelope.replace(part, changed.toString("base64url"));
      assert.throws(() => ring.decrypt(text, BOUND), refused(/changed/));
    }
  }
});

test("what is no envelope is said to be none", () => {
  for (const text of ["", "flow1.k1", "flow1.k1.AAAA.AAAA", "flow2.k1.AAAA.AAAA", '{"password":"x"}']) {
    assert.throws(() => keyRing().decrypt(text, BOUND), refused(/no envelope|was changed/));
  }
  assert.equal(keyRing().keyIdOf("plain"), undefined);
});

test("keys that are derived differ by key and purpose, and are the same each time", () => {
  const ring = keyRing("k2", "k1");
  const derived = [ring.derive("k1", "a"), ring.derive("k1", "b"), ring.derive("k2", "a")].map((key) =>
    key.toString("hex"),
  );
  assert.equal(new Set(derived).size, 3);
  assert.deepEqual(keyRing("k1").derive("k1", "a"), ring.derive("k1", "a"));
  assert.equal(ring.derive("k1", "a").length, 32);
  assert.throws(() => ring.derive("k9", "a"), refused(/'k9'/));
});
