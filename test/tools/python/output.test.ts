import assert from "node:assert/strict";
import { test } from "node:test";
import { createFrameReader, frame } from "../../../src/tools/python/harness.ts";
import { createOutputReader } from "../../../src/tools/python/output.ts";

const MARK = Buffer.from("\0mark\n");

function reader(maxBytes = 1_000_000) {
  const seen: string[] = [];
  const output = createOutputReader({
    mark: MARK,
    maxBytes,
    line: (bytes) => seen.push(bytes.toString()),
    part: () => seen.push("<end>"),
  });
  return { seen, output };
}

test("output is cut into lines and parts, however it arrives", () => {
  const bytes = Buffer.concat([Buffer.from("one\r\n\nzwei ü\nunfinished"), MARK, Buffer.from("next\n"), MARK]);
  const expected = ["one", "", "zwei ü", "unfinished", "<end>", "next", "<end>"];
  for (let size = 1; size <= bytes.length; size++) {
    const { seen, output } = reader();
    for (let at = 0; at < bytes.length; at += size) output.push(bytes.subarray(at, at + size));
    assert.deepEqual(seen, expected, `in pieces of ${size}`);
  }
});

test("a long line is cut at characters, and its end with a mark is still found", () => {
  for (const size of [1_000, 16_384, 200_000]) {
    const { seen, output } = reader();
    const bytes = Buffer.concat([Buffer.from("ü".repeat(50_000)), MARK]);
    for (let at = 0; at < bytes.length; at += size) output.push(bytes.subarray(at, at + size));
    assert.equal(seen.pop(), "<end>");
    assert.equal(seen.join(""), "ü".repeat(50_000));
    assert.ok(seen.every((line) => Buffer.byteLength(line) <= 16 * 1024));
  }
});

test("output over the limit is dropped with one notice, and the next part starts anew", () => {
  const { seen, output } = reader(10);
  output.push(Buffer.concat([Buffer.from("12345\n67\nover the limit\nmore\n"), MARK, Buffer.from("next\n"), MARK]));
  assert.deepEqual(seen, [
    "12345",
    "67",
    "[more than 10 bytes of output: the rest was dropped]",
    "<end>",
    "next",
    "<end>",
  ]);
});

test("what a process said last is given out when it ends without a newline", () => {
  const { seen, output } = reader();
  output.push(Buffer.from("last words"));
  output.end();
  assert.deepEqual(seen, ["last words"]);
});

test("frames are put together again from pieces of any size", () => {
  const bytes = Buffer.concat([frame("first"), frame(""), frame("x".repeat(70)), frame("last")]);
  for (let size = 1; size <= bytes.length; size++) {
    const seen: string[] = [];
    const frames = createFrameReader(100, (bytes) => seen.push(bytes.toString()));
    for (let at = 0; at < bytes.length; at += size) frames.push(bytes.subarray(at, at + size));
    assert.deepEqual(seen, ["first", "", "x".repeat(70), "last"], `in pieces of ${size}`);
  }
});

test("a frame over the limit is refused before its bytes are held", () => {
  const frames = createFrameReader(100, () => assert.fail("no frame"));
  assert.throws(() => frames.push(Buffer.from([255, 255, 255, 255])), { code: "INTERNAL" });
});
