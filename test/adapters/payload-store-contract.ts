import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import type { PayloadStore } from "../../src/ports/payload-store.ts";
import { bodyOf, textIn } from "../support/service/payload-body.ts";

const ABOUT = { contentType: "application/json", ttlMs: 60_000 };
const SIGNAL = AbortSignal.timeout(600_000);

/** What every store of payloads does. `open` gives the store; tests share it, not their payloads. */
export function exercisePayloadStore(name: string, open: () => PayloadStore): void {
  const check = (what: string, body: (store: PayloadStore, name: string) => Promise<void>) => {
    test(what, { timeout: 300_000 }, () => body(open(), randomUUID()));
  };

  describe(name, () => {
    check("what was written is read byte for byte, as often as one likes", async (store, payload) => {
      const json = '[{"z": 1, "a":  "\\u00e9 é 🙂"}, [1.0, null],\n "x"]';
      const planned = store.locate("42", payload);
      assert.equal(await store.read(planned), undefined, "before it is there");
      const location = await store.write(planned, bodyOf(json), ABOUT, SIGNAL);
      for (let time = 0; time < 2; time += 1) assert.equal(await textIn(await store.read(location)), json);
      // Where it was to be is enough to find it: what the store added may have been lost with its writer.
      assert.equal(await textIn(await store.read(planned)), json);
    });

    check("a part is read as it was asked for, at the ends too", async (store, payload) => {
      const json = JSON.stringify(Array.from({ length: 5_000 }, (_, item) => `${item}`));
      const location = await store.write(store.locate("42", payload), bodyOf(json), ABOUT, SIGNAL);
      for (const [start, end] of [
        [0, 1],
        [7, 300],
        [json.length - 5, json.length],
        [0, json.length],
      ] as const) {
        assert.equal(await textIn(await store.read(location, { start, end })), json.slice(start, end));
      }
    });

    check("what was removed is gone, and its bytes with it; removing it again is nothing", async (store, payload) => {
      const location = await store.write(store.locate("42", payload), bodyOf('["x"]'), ABOUT, SIGNAL);
      await store.remove(location);
      assert.equal(await store.read(location), undefined);
      await store.remove(location);
    });

    check("two payloads of one execution are two", async (store, payload) => {
      const other = randomUUID();
      const one = await store.write(store.locate("42", payload), bodyOf('"one"'), ABOUT, SIGNAL);
      const two = await store.write(store.locate("42", other), bodyOf('"two"'), ABOUT, SIGNAL);
      await store.remove(one);
      assert.equal(await textIn(await store.read(two)), '"two"');
    });

    check("what a writer that broke off left is removed by where it was to be", async (store, payload) => {
      const planned = store.locate("42", payload);
      const broken = {
        ...bodyOf(JSON.stringify("x".repeat(500_000))),
        async *read() {
          yield Buffer.from('"xxx');
          throw new Error("the writer is gone");
        },
      };
      await assert.rejects(store.write(planned, broken, ABOUT, SIGNAL));
      await store.remove(planned);
      // A service that keeps half an upload may do so after the connection broke: what it wrote late is removed as well.
      if ((await store.read(planned)) !== undefined) await store.remove(planned);
      assert.equal(await store.read(planned), undefined);
    });

    check("a reader who stops early holds nothing", async (store, payload) => {
      const json = JSON.stringify("y".repeat(900_000));
      const location = await store.write(store.locate("42", payload), bodyOf(json), ABOUT, SIGNAL);
      for (let time = 0; time < 50; time += 1) {
        for await (const part of (await store.read(location))?.body ?? []) {
          assert.ok(part.byteLength > 0);
          break;
        }
      }
    });
  });
}
