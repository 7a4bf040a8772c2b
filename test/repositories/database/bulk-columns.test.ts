import assert from "node:assert/strict";
import { before, test } from "node:test";
import fc from "fast-check";
import type { PendingQuery, Row } from "postgres";
import { documents, numbers, texts } from "../../../src/repositories/database/bulk-columns.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { openServiceDatabase } from "../service-database.ts";

// Against a real server, which is what takes the texts apart. A failed property prints its seed and path.

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

const odd = fc.constantFrom("NULL", "null", "", " ", ",", "{}", '"', "\\", '\\"', "\n", "\u001e", "\u{1f600}", "ä");
const text = fc.oneof(odd, fc.string({ unit: "binary" })).filter((value) => !value.includes("\u0000"));
const self = <T>(value: T) => value;

/** A list as the server has it, read as JSON: the driver does not tell NULL in arrays from a text. */
async function read(column: PendingQuery<Row[]>): Promise<unknown> {
  const [row] = await database.sql<[{ json: string }]>`select array_to_json(${column})::text as json`;
  return JSON.parse(row.json);
}

/** A column without any value is an empty array; `unnest` beside others fills it up. */
const orEmpty = <T>(values: (T | null)[]) => (values.every((value) => value === null) ? [] : values);

test("any texts arrive as they are, and NULL apart from the text NULL", async () => {
  const property = fc.asyncProperty(fc.array(fc.option(text)), async (values) => {
    assert.deepEqual(await read(database.sql`${texts(values, self)}::text[]`), orEmpty(values));
  });
  await fc.assert(property, { numRuns: 200 });
});

test("any documents arrive as the text that they are, and NULL apart from JSON's null", async () => {
  const document = fc.oneof(
    fc.json(),
    text.map((value) => JSON.stringify({ b: value, a: "\u0000\ud800\u001e" })),
  );
  const property = fc.asyncProperty(fc.array(fc.option(document, { nil: undefined })), async (values) => {
    const sent = documents(values, self);
    const column = database.sql`array(select unnest(string_to_array(${sent}::text, e'\\x1e', ''))::json::text)`;
    assert.deepEqual(await read(column), orEmpty(values.map((value) => value ?? null)));
  });
  await fc.assert(property, { numRuns: 200 });
});

test("numbers and ids arrive, and NULL for missing values", async () => {
  const values = [1, "9007199254740991", null, undefined, 0];
  const column = database.sql`${numbers(values, self)}::bigint[]`;
  assert.deepEqual(await read(column), [1, Number.MAX_SAFE_INTEGER, null, null, 0]);
  assert.equal(numbers([1.5, 1e300], self), "{1.5,1e+300}");
});
