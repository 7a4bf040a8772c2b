import assert from "node:assert/strict";
import { test } from "node:test";
import { answerResult } from "../../src/testing/answer.ts";

const VIEW = { status: "success", rows: [{ n: 1 }], row_count: 1, columns: ["n"] };

for (const kind of ["sqldb", "duckdb"]) {
  test(`mocked rows of ${kind} are what its statement would give`, () => {
    assert.deepEqual(answerResult({ rows: [{ n: 1 }] }, kind, {}, "x"), {
      status: "ok",
      data: { ...VIEW, statement_count: 1 },
      virtual: { command_0: VIEW },
    });
  });
}

test("mocked rows of warehouse stand under statement_0 too", () => {
  const result = answerResult({ rows: [{ n: 1 }] }, "warehouse", {}, "x");
  assert.deepEqual(result, { status: "ok", data: { ...VIEW, statement_0: VIEW } });
});

test("a mocked transfer answers what the test says, and a mocked error is that of its kind", () => {
  const counts = { status: "success", rows_read: 3, rows_written: 3 };
  assert.deepEqual(answerResult({ result: counts }, "transfer", {}, "x"), { status: "ok", data: counts });
  const { error, pg } = answerResult({ error: { kind: "db_constraint", code: "23505" } }, "transfer", {}, "x");
  assert.deepEqual([error?.kind, error?.code, pg?.sqlstate], ["db_constraint", "23505", "23505"]);
});
