import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { createMessageReader, encodeMessage } from "../../../src/platform/http/messages.ts";
import { bytesOf } from "../../support/servers/message-client.ts";

const [BYTES_MAX, DROP_MAX] = [300, 1_000];

/** What a reader made of the bytes, in the parts in which they came. */
function readAll(parts: readonly Buffer[], isReady: () => boolean = () => true, bytesMax = BYTES_MAX) {
  const seen: unknown[] = [];
  const reader = createMessageReader({
    bytesMax,
    dropMax: DROP_MAX,
    take: ({ kind, id, status, fields, body }) => seen.push([kind, id, status, fields.toString(), body.toString()]),
    dropped: (message) => seen.push(message),
    failed: (reason) => seen.push(reason),
    isReady,
  });
  for (const part of parts) reader.push(part);
  return { seen, reader };
}

/** The bytes cut at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const message = fc.tuple(
  fc.nat(255),
  fc.nat(0xffff_ffff),
  fc.nat(0xffff),
  fc.constantFrom("", '{"a":"b"}'),
  fc.string({ unit: "grapheme", maxLength: 60 }),
);

test("messages are what was written, however the bytes are cut on their way", () => {
  const run = fc.property(fc.array(message, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 12 }), (all, places) => {
    const bytes = Buffer.concat(all.map((one) => encodeMessage(...one)));
    const { seen, reader } = readAll(cut(bytes, places));
    assert.deepEqual(seen, all);
    assert.equal(reader.isWithin(), false);
  });
  fc.assert(run);
});

test("what came while messages had to wait is read in order, also after a part of one", () => {
  const run = fc.property(
    fc.array(message, { minLength: 1, maxLength: 8 }),
    fc.array(fc.nat(), { maxLength: 12 }),
    fc.array(fc.nat(3), { maxLength: 20 }),
    (all, places, room) => {
      const bytes = Buffer.concat(all.map((one) => encodeMessage(...one)));
      let left = 0;
      const seen: unknown[] = [];
      const reader = createMessageReader({
        bytesMax: BYTES_MAX,
        dropMax: DROP_MAX,
        take: ({ id, body }) => {
          left -= 1;
          seen.push([id, body.toString()]);
        },
        dropped: () => assert.fail(),
        failed: () => assert.fail(),
        isReady: () => left > 0,
      });
      cut(bytes, places).forEach((part, index) => {
        reader.push(part);
        left = room[index] ?? 0;
        reader.proceed();
      });
      left = Number.POSITIVE_INFINITY;
      reader.proceed();
      assert.deepEqual(
        seen,
        all.map(([, id, , , body]) => [id, body]),
      );
    },
  );
  fc.assert(run);
});

test("the bytes are those of the page: a length without itself, kind, id, status, length of the fields", () => {
  assert.deepEqual(
    encodeMessage(2, 7, 0, '{"idempotency-key":"k"}', "{}"),
    bytesOf(2, 7, "{}", { "idempotency-key": "k" }),
  );
  assert.equal(encodeMessage(17, 1).toString("hex"), "00000009110000000100000000");
});

test("a message of the longest length is taken; one more byte is dropped, and what follows is read", () => {
  const body = (bytes: number) => "x".repeat(bytes - 13);
  const next = encodeMessage(3, 3);
  const long = encodeMessage(1, 1, 0, "", body(BYTES_MAX));
  assert.equal(readAll([long, next]).seen.length, 2);
  const longer = encodeMessage(1, 1, 0, "", body(BYTES_MAX + 1));
  const expected = [{ kind: 1, id: 1, bytes: BYTES_MAX + 1 - 13 }, [3, 3, 0, "", ""]];
  for (const parts of [[longer, next], cut(Buffer.concat([longer, next]), [13, 14, 200, 305])]) {
    assert.deepEqual(readAll(parts).seen, expected);
  }
  const longest = encodeMessage(1, 1, 0, "", body(DROP_MAX));
  assert.equal(readAll([longest]).seen.length, 1);
  assert.deepEqual(readAll([encodeMessage(1, 1, 0, "", body(DROP_MAX + 1)), next]).seen, ["too_long"]);
});

test("lengths that cannot be end the reading, whatever follows", () => {
  const good = encodeMessage(1, 1);
  for (const length of [0, 1, 8]) assert.deepEqual(readAll([bytesOf(1, 1, "", {}, length), good]).seen, ["malformed"]);
  assert.deepEqual(readAll([bytesOf(1, 1, "", undefined, 0xffff_ffff), good]).seen, ["too_long"]);
  const fields = Buffer.from(good);
  fields.writeUInt16BE(1, 11);
  assert.deepEqual(readAll([fields, good]).seen, ["malformed"]);
});

test("bytes that come one by one take no more memory than twice a message", () => {
  const bytes = encodeMessage(1, 1, 0, "", "x".repeat(200_000));
  const seen: string[] = [];
  const reader = createMessageReader({
    ...{ bytesMax: 300_000, dropMax: 300_000, isReady: () => true, dropped: () => undefined, failed: () => undefined },
    take: ({ body }) => seen.push(body.toString()),
  });
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const before = process.memoryUsage().arrayBuffers;
  for (const byte of bytes.subarray(0, -1)) reader.push(Buffer.of(byte));
  collect();
  const grown = process.memoryUsage().arrayBuffers - before;
  assert.ok(grown < 3 * bytes.length, `${grown} bytes`);
  reader.push(bytes.subarray(-1));
  assert.equal(seen[0]?.length, 200_000);
});
