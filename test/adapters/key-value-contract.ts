import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import { KEY_BYTES_MAX, type KeyValueStore, VALUE_BYTES_MAX } from "../../src/ports/key-value.ts";
import { FlowError } from "../../src/schema/words/errors.ts";

/** Bytes of a text. */
export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The value as text, or undefined where there is none. */
export async function textOf(store: KeyValueStore, bucket: string, key: string): Promise<string | undefined> {
  const entry = await store.get(bucket, key);
  return entry && new TextDecoder().decode(entry.value);
}

/** Resolves when the value has expired. */
async function gone(store: KeyValueStore, bucket: string, key: string): Promise<void> {
  while ((await store.get(bucket, key)) !== undefined);
}

const BUCKET = "sessions";

/** What every key-value store does. The stores that `stores` gives are one: two servers' ends. Tests share it, not their keys. */
export function exerciseKeyValue(name: string, stores: () => { here: KeyValueStore; there: KeyValueStore }): void {
  const check = (
    what: string,
    body: (ends: { here: KeyValueStore; there: KeyValueStore; key: string }) => Promise<void>,
  ) => {
    test(what, { timeout: 300_000 }, () => body({ ...stores(), key: randomUUID() }));
  };

  describe(name, () => {
    check("what was put is there for everyone, the last one", async ({ here, there, key }) => {
      assert.equal(await there.get(BUCKET, key), undefined);
      const first = await here.put(BUCKET, key, bytes("one"));
      assert.deepEqual(await there.get(BUCKET, key).then((entry) => entry?.revision), first);
      const second = await there.put(BUCKET, key, bytes("two"));
      assert.ok(Number.isSafeInteger(first) && second > first);
      assert.equal(await textOf(here, BUCKET, key), "two");
    });

    check("a key of one bucket is not there in another", async ({ here, key }) => {
      await here.put(BUCKET, key, bytes("one"));
      assert.equal(await here.get("other-bucket", key), undefined);
    });

    check("what was deleted is gone; deleting it again is nothing", async ({ here, there, key }) => {
      await here.delete(BUCKET, key);
      await here.put(BUCKET, key, bytes("one"));
      await there.delete(BUCKET, key);
      assert.equal(await here.get(BUCKET, key), undefined);
      await here.delete(BUCKET, key);
    });

    check("an update needs the revision that is there", async ({ here, there, key }) => {
      const first = await here.put(BUCKET, key, bytes("one"));
      const second = await there.update(BUCKET, key, bytes("two"), { revision: first });
      assert.ok(second !== undefined && second > first);
      assert.equal(await here.update(BUCKET, key, bytes("three"), { revision: first }), undefined);
      assert.equal(await here.update(BUCKET, key, bytes("three"), { revision: 0 }), undefined);
      assert.equal(await textOf(here, BUCKET, key), "two");
    });

    check("an update with revision 0 needs that there is none", async ({ here, there, key }) => {
      const first = await here.update(BUCKET, key, bytes("one"), { revision: 0 });
      assert.ok(first !== undefined);
      assert.equal(await there.update(BUCKET, key, bytes("two"), { revision: 0 }), undefined);
      await here.delete(BUCKET, key);
      assert.equal(await here.update(BUCKET, key, bytes("two"), { revision: first }), undefined, "it is deleted");
      const again = await there.update(BUCKET, key, bytes("three"), { revision: 0 });
      assert.ok(again !== undefined && again > first, "the revision of a value that was deleted never comes again");
      assert.equal(await textOf(here, BUCKET, key), "three");
    });

    check("of many updates at once of one revision, one is done", async ({ here, there, key }) => {
      const revision = await here.put(BUCKET, key, bytes("start"));
      const updates = Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? here : there).update(BUCKET, key, bytes(String(index)), { revision }),
      );
      const done = (await Promise.all(updates)).map((result, index) => ({ result, index }));
      const winners = done.filter(({ result }) => result !== undefined);
      assert.equal(winners.length, 1);
      assert.equal(await textOf(there, BUCKET, key), String(winners[0]?.index));
    });

    check("what has expired is not there: for get, for its revision, for a new one", async ({ here, there, key }) => {
      const revision = await here.put(BUCKET, key, bytes("one"), { ttlMs: 1 });
      await gone(there, BUCKET, key);
      assert.equal(await here.update(BUCKET, key, bytes("two"), { revision }), undefined);
      const next = await there.update(BUCKET, key, bytes("three"), { revision: 0, ttlMs: 3_600_000 });
      assert.ok(next !== undefined && next > revision);
      assert.equal(await textOf(here, BUCKET, key), "three");
    });

    check("writing again sets the time to live anew, or takes it away", async ({ here, key }) => {
      const revision = await here.put(BUCKET, key, bytes("one"), { ttlMs: 3_600_000 });
      await here.update(BUCKET, key, bytes("two"), { revision, ttlMs: 1 });
      await gone(here, BUCKET, key);
      await here.put(BUCKET, key, bytes("three"), { ttlMs: 1 });
      await here.put(BUCKET, key, bytes("four"));
      assert.equal(await textOf(here, BUCKET, key), "four");
    });

    check(
      "values are bytes: none, any, up to the limit, with a time to live or without",
      async ({ here, there, key }) => {
        const marked = Uint8Array.of(0x01, 0x66, 0x6c, 0x31, 0, 0, 0, 0, 0, 0, 0, 0, 7);
        for (const value of [new Uint8Array(), Uint8Array.of(0), marked, randomBytes(VALUE_BYTES_MAX)]) {
          for (const ttl of [{}, { ttlMs: 3_600_000 }]) {
            await here.put(BUCKET, key, value, ttl);
            const found = await there.get(BUCKET, key);
            assert.ok(found !== undefined && Buffer.compare(value, found.value) === 0, `${value.length} bytes`);
          }
        }
      },
    );

    check("keys are any text, and no two of them are one", async ({ here, there, key }) => {
      const forms = [
        "a",
        "A",
        "a.b",
        "a.b.",
        ".",
        "..",
        "*",
        ">",
        "a b",
        "=YQ",
        "YQ",
        "=",
        "é",
        "e\u0301",
        "😀",
        "'; drop",
        "/",
      ];
      const keys = [...forms.map((form) => `${form}${key}`), ...forms.map((form) => `${key}${form}`), `${key}\n`];
      keys.push(key.padEnd(KEY_BYTES_MAX, "x"), key.padEnd(KEY_BYTES_MAX - 1, " "));
      await Promise.all(keys.map((each) => here.put(BUCKET, each, bytes(each))));
      for (const each of keys) assert.equal(await textOf(there, BUCKET, each), each);
    });

    check("what no store can hold is refused, and the key is not repeated", async ({ here, key }) => {
      const value = bytes("canary");
      const refused = (call: Promise<unknown>, code: string) =>
        assert.rejects(call, (error) => {
          assert.ok(error instanceof FlowError && error.code === code, String(error));
          assert.doesNotMatch(error.message, /canary/);
          return true;
        });
      for (const bucket of ["", "a b", "a.b", "*", "x".repeat(65)])
        await refused(here.get(bucket, key), "INVALID_INPUT");
      for (const bad of ["", "canary\0", "canary\ud800", "canary".repeat(200), "é".repeat(513)]) {
        await refused(here.get(BUCKET, bad), "INVALID_INPUT");
        await refused(here.put(BUCKET, bad, value), "INVALID_INPUT");
        await refused(here.update(BUCKET, bad, value, { revision: 0 }), "INVALID_INPUT");
        await refused(here.delete(BUCKET, bad), "INVALID_INPUT");
      }
      for (const ttlMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
        await refused(here.put(BUCKET, key, value, { ttlMs }), "INVALID_INPUT");
      await refused(here.put(BUCKET, key, new Uint8Array(VALUE_BYTES_MAX + 1)), "TOO_LARGE");
      assert.equal(await here.get(BUCKET, key), undefined);
    });
  });
}
