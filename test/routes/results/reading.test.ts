import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Listener, listen } from "../../../src/roles/http/listen.ts";
import { storedResults } from "../../support/database/stored-results.ts";
import { openApi } from "../../support/service/api.ts";
import { type Claimed, ONE_STEP } from "../../support/service/api-work.ts";

/* Reading payloads over a real connection: whole, in parts, damaged, and given up half-way. */

const damagedRefs: string[] = [];
const api = await openApi(
  {},
  {
    resultsObserver: {
      ...{ stored: () => undefined, read: () => undefined, removed: () => undefined, failed: () => undefined },
      damaged: (_store, ref) => void damagedRefs.push(ref),
    },
  },
);
const { work, claimed, refOf, put } = storedResults(api);
let listener: Listener;
before(async () => {
  await work.register("one", ONE_STEP);
  const malformed = () => new Response(null, { status: 400 });
  listener = await listen({ fetch: (asked) => api.open.fetch(asked), malformed }, { host: "127.0.0.1", port: 0 });
});
after(() => listener.close());

const LONG_BYTES = 6_000_000;
/** Every part of it is different. */
const long = () => JSON.stringify(Array.from({ length: LONG_BYTES / 10 }, (_, at) => String(at).padStart(7, "0")));

const urlOf = (ref: string) => `${listener.url}/results/resolve?${new URLSearchParams({ ref })}`;
const read = (ref: string, init: RequestInit = {}) => fetch(urlOf(ref), init);

async function stored(text: string, more: Record<string, string> = {}): Promise<{ ref: string; command: Claimed }> {
  const command = await claimed("one");
  const { status, body } = await put(command, text, more);
  assert.equal(status, 200, JSON.stringify(body));
  return { ref: refOf(command), command };
}

async function fileOf(ref: string): Promise<string> {
  const [row] = await api.database.sql<
    { file: string }[]
  >`select location ->> 'file' as file from flow.result where ref = ${ref}`;
  assert.ok(row !== undefined);
  return join(api.resultsFolder, row.file.slice(0, 2), `${row.file}.json`);
}

test("a long payload streams whole, with its length, type, tag and a name that is safe", async () => {
  const text = long();
  const { ref } = await stored(text);
  const answer = await read(ref);
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.equal(bytes.toString(), text);
  const sha256 = createHash("sha256").update(text).digest("hex");
  for (const [name, value] of [
    ["content-length", String(text.length)],
    ["content-type", "application/json"],
    ["etag", `"${sha256}"`],
    ["accept-ranges", "bytes"],
    ["content-disposition", 'attachment; filename="start-t.json"'],
    ["content-security-policy", "sandbox; default-src 'none'"],
    ["x-content-type-options", "nosniff"],
  ] as const) {
    assert.equal(answer.headers.get(name), value, name);
  }
  assert.equal((await read(ref, { headers: { "if-none-match": `"${sha256}"` } })).status, 304);
  const head = await read(ref, { method: "HEAD" });
  assert.deepEqual([head.status, head.headers.get("content-length")], [200, String(text.length)]);
});

test("ranges work for payloads in the row and on disk, compressed or not", async () => {
  const texts = [JSON.stringify("ab".repeat(2_000)), long()];
  for (const text of texts) {
    for (const compression of ["none", "gzip"]) {
      const { ref } = await stored(text, { compression });
      for (const [range, start, end] of [
        ["bytes=0-9", 0, 10],
        ["bytes=-7", text.length - 7, text.length],
        [`bytes=${text.length - 3}-`, text.length - 3, text.length],
        ["bytes=1000-1999", 1_000, 2_000],
      ] as const) {
        const answer = await read(ref, { headers: { range } });
        assert.equal(answer.status, 206);
        assert.equal(answer.headers.get("content-range"), `bytes ${start}-${end - 1}/${text.length}`);
        assert.equal(await answer.text(), text.slice(start, end), `${range}, ${compression}`);
      }
      const beyond = await read(ref, { headers: { range: `bytes=${text.length}-` } });
      assert.equal(beyond.status, 416);
      assert.equal(beyond.headers.get("content-range"), `bytes */${text.length}`);
      assert.equal(((await beyond.json()) as { code: string }).code, "RANGE_NOT_SATISFIABLE");
    }
  }
});

test("an altered long payload is cut off before its end and reported, and no range of it is returned", async (t) => {
  // What the listener prints of an answer that broke off.
  t.mock.method(console, "error", () => undefined);
  const text = long();
  const { ref } = await stored(text);
  const file = await fileOf(ref);
  const bytes = await readFile(file);
  const middle = LONG_BYTES / 2;
  bytes[middle] = 0x39 === bytes[middle] ? 0x38 : 0x39;
  await writeFile(file, bytes);
  await assert.rejects(
    read(ref).then((answer) => answer.arrayBuffer()),
    /terminated|fetch failed/,
  );
  const part = await read(ref, { headers: { range: "bytes=0-9" } });
  assert.deepEqual([part.status, ((await part.json()) as { code: string }).code], [404, "REFERENCE_NOT_AVAILABLE"]);
  assert.ok(damagedRefs.includes(ref));
  await assert.rejects(api.service.results.load(ref), { code: "REFERENCE_NOT_AVAILABLE" });
});

test("one that was cut short, or is no gzip any more, or is gone, is 404 from the beginning", async () => {
  for (const [compression, damage] of [
    ["none", (bytes: Buffer) => bytes.subarray(0, -1)],
    ["gzip", () => Buffer.from("not squeezed")],
    ["gzip", (bytes: Buffer) => bytes.subarray(0, 10)],
  ] as const) {
    const { ref } = await stored(JSON.stringify("z".repeat(1_500_000)), { compression });
    const file = await fileOf(ref);
    await writeFile(file, damage(await readFile(file)));
    const answer = await read(ref);
    const { code, error } = (await answer.json()) as { code: string; error: string };
    assert.deepEqual([answer.status, code], [404, "REFERENCE_NOT_AVAILABLE"]);
    assert.match(error, /sha256 differs/);
    assert.equal(answer.headers.get("etag"), null);
  }
});

test("a caller who leaves half-way ends the reading", async () => {
  const { ref } = await stored(long());
  for (let time = 0; time < 20; time += 1) {
    await new Promise<void>((resolve, reject) => {
      const asked = request(urlOf(ref), (answer) => {
        answer.once("data", () => {
          answer.destroy();
          resolve();
        });
      });
      asked.once("error", reject);
      asked.end();
    });
  }
  const answer = await read(ref);
  assert.equal((await answer.arrayBuffer()).byteLength, Number(answer.headers.get("content-length")));
});

test("other types come back as they were said to be, and a name never holds what a system would read", async () => {
  const command = await claimed("one");
  const ref = `noetl://execution/${command.execution_id}/step/${encodeURIComponent('a"; x/../é')}/task/t/run/1`;
  const { status } = await put(command, "<b>hi</b>", { ref, content_type: "text/html; charset=utf-8" });
  assert.equal(status, 200);
  const answer = await read(ref);
  assert.equal(await answer.text(), "<b>hi</b>");
  assert.equal(answer.headers.get("content-type"), "text/html; charset=utf-8");
  assert.match(answer.headers.get("content-disposition") ?? "", /^attachment; filename="[\w-]+\.bin"$/);
  for (const wrong of ["text", "a/b\r\nx: y", "a/b; x"]) {
    assert.equal((await put(command, "1", { ref, content_type: wrong })).status, 422, wrong);
  }
  await assert.rejects(api.service.results.load(ref), { code: "REFERENCE_NOT_AVAILABLE", message: /it is not JSON/ });
});

test("a whole ResultRef stands for its reference, also of the kind that it had before", async () => {
  const { ref } = await stored('"x"');
  for (const kind of ["result_ref", "temp_ref"]) {
    const answer = await read(JSON.stringify({ kind, ref, store: "object", scope: "step" }));
    assert.equal(await answer.text(), '"x"');
  }
  for (const other of [JSON.stringify({ kind: "other", ref }), "{", JSON.stringify([ref])]) {
    assert.equal((await read(other)).status, 404);
  }
});

test("a reference of another execution leads nowhere", async () => {
  const { ref, command } = await stored('"x"');
  const other = await claimed("one");
  const foreign = ref.replace(command.execution_id, other.execution_id);
  assert.equal((await read(foreign)).status, 404);
  assert.equal((await read(`${ref}/manifest`)).status, 404);
  const manifest = `${refOf(other)}/manifest`;
  assert.equal((await put(other, '{"kind": "manifest", "parts": []}', { ref: manifest })).status, 200);
  assert.equal((await read(manifest)).status, 200);
});
