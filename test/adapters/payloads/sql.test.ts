import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createSqlPayloads } from "../../../src/adapters/payloads/sql.ts";
import type { PayloadStore } from "../../../src/ports/payload-store.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import { bodyOf, textIn } from "../../support/service/payload-body.ts";

const ABOUT = { contentType: "application/json", ttlMs: 60_000 };
const SIGNAL = AbortSignal.timeout(600_000);

let database: Database;
let store: PayloadStore;
before(async () => {
  database = await openServiceDatabase();
  store = createSqlPayloads(database);
});

const write = (name: string, json: string) => store.write(store.locate("42", name), bodyOf(json), ABOUT, SIGNAL);

test("a list is a row per item, which SQL looks into; the reference says where", async () => {
  const list = Array.from({ length: 2_500 }, (_, id) => ({
    id,
    name: `row ${id}`,
    tags: [id % 2 === 0 ? "even" : "odd"],
  }));
  const location = await write("list", JSON.stringify(list));
  assert.deepEqual(location, { schema: "flow", table: "result_row", payload: "list", range: "0-2499", rows: 2_500 });
  const found = await database.sql`
    select item, value ->> 'name' as name from flow.result_row
    where payload = 'list' and value @> '{"tags": ["odd"]}' and (value ->> 'id')::int > 2496 order by item`;
  assert.deepEqual(
    [...found].map((row) => ({ ...row })),
    [
      { item: 2_497, name: "row 2497" },
      { item: 2_499, name: "row 2499" },
    ],
  );
});

test("anything else is one row", async () => {
  const location = await write("object", '{"total": 7, "rows": [1, 2]}');
  assert.deepEqual(location, { schema: "flow", table: "result_row", payload: "object", pk: "object/0", rows: 1 });
  const [row] = await database.sql`select value -> 'total' as total from flow.result_row where payload = 'object'`;
  assert.equal(row?.["total"], 7);
});

test("what jsonb cannot hold is refused with a way out, and what was written of it goes", async () => {
  for (const json of ['["a", "\\u0000"]', "[1,]", '{"a": tru}']) {
    await assert.rejects(write("bad", json), {
      code: "INVALID_INPUT",
      message: /sqldb cannot take the result apart: .*auto/,
    });
    await store.remove(store.locate("42", "bad"));
  }
  const [row] = await database.sql`
    select (select count(*)::int from flow.result_row where payload = 'bad') as rows,
      (select count(*)::int from flow.result_part where payload = 'bad') as parts`;
  assert.deepEqual({ ...row }, { rows: 0, parts: 0 });
});

test("a long payload is kept and read in parts of 1 MiB", async () => {
  const json = JSON.stringify(Array.from({ length: 30 }, (_, item) => String(item).repeat(100_000)));
  const location = await write("long", json);
  const sizes: number[] = [];
  for await (const part of (await store.read(location))?.body ?? []) sizes.push(part.byteLength);
  assert.ok(sizes.length >= 4 && Math.max(...sizes) === 1_048_576, String(sizes));
  assert.equal(
    await textIn(await store.read(location, { start: 1_048_570, end: 1_048_590 })),
    json.slice(1_048_570, 1_048_590),
  );
});
