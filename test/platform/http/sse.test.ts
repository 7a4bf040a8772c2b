import assert from "node:assert/strict";
import { test } from "node:test";
import { readMessages, type ServerSentEvent } from "../../../src/platform/http/sse.ts";

const STREAM = [
  ...["retry: 1000", "", ": still here", "", "id: 7", "event: event", 'data: {"name": "Zoë 🜂"}', ""],
  ...["data: two", "data: lines", "", "event: nothing", "", "data", "", "event:end", "data:{}", "", "data: half"],
].join("\n");

const MESSAGES: ServerSentEvent[] = [
  { event: "event", data: '{"name": "Zoë 🜂"}' },
  { event: "message", data: "two\nlines" },
  { event: "message", data: "" },
  { event: "end", data: "{}" },
];

async function read(...chunks: Uint8Array[]): Promise<ServerSentEvent[]> {
  const all: ServerSentEvent[] = [];
  for await (const messages of readMessages(sent(chunks))) all.push(...messages);
  return all;
}

// What a connection gives is asynchronous.
async function* sent(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield await Promise.resolve(chunk);
}

test("messages are read wherever the connection cuts the stream, within a character too", async () => {
  const bytes = new TextEncoder().encode(STREAM);
  for (let at = 0; at <= bytes.length; at += 1) {
    assert.deepEqual(await read(bytes.subarray(0, at), bytes.subarray(at)), MESSAGES, `cut at byte ${at}`);
  }
});

test("lines may end with a carriage return and a line feed", async () => {
  assert.deepEqual(await read(new TextEncoder().encode(STREAM.replaceAll("\n", "\r\n"))), MESSAGES);
});

test("a message without an end is refused before it fills the memory", async () => {
  const chunk = new TextEncoder().encode("x".repeat(1_000_000));
  await assert.rejects(read(...Array.from({ length: 20 }, () => chunk)), { code: "SERVER_UNREACHABLE" });
  const line = new TextEncoder().encode(`data: ${"x".repeat(1_000_000)}\n`);
  await assert.rejects(read(...Array.from({ length: 20 }, () => line)), { code: "SERVER_UNREACHABLE" });
});
