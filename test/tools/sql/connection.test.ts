import assert from "node:assert/strict";
import { test } from "node:test";
import { readSqlConnection } from "../../../src/tools/sql/connection.ts";

const read = (connection_string: string) => readSqlConnection({ connection_string }, {});

test("a connection string is an address, or pairs of keys and values", () => {
  const expected = {
    host: "db",
    port: 5433,
    user: "u",
    password: "p w",
    database: "d",
    sslMode: "require",
    hostBy: "playbook",
  };
  assert.deepEqual(read("postgres://u:p%20w@db:5433/d?sslmode=require"), expected);
  assert.deepEqual(read("host=db port=5433 user=u password='p w' dbname=d sslmode=require"), expected);
});

for (const [what, text] of [
  ["a word", "secret"],
  ["an address with a bare percent sign", "postgres://u:sec%ret@db/d"],
  ["an address that is none", "postgres://u:secret@:99999999/d"],
  ["a text of a million letters", "s".repeat(1_000_000)],
] as const) {
  test(`${what} is refused, without quoting what may be a password`, () => {
    assert.throws(
      () => read(text),
      (error: Error) =>
        /connection string is not one of PostgreSQL/.test(error.message) && !error.message.includes("ret"),
    );
  });
}

for (const [sslmode, mode] of [
  ["true", "require"],
  ["False", "disable"],
  ["verify-full", "verify-full"],
]) {
  test(`sslmode ${sslmode} is ${mode}`, () => {
    assert.equal(readSqlConnection({ host: "db", sslmode: sslmode ?? "" }, {}).sslMode, mode);
  });
}

test("an unknown sslmode is refused, under every name of the key", () => {
  assert.throws(() => readSqlConnection({ host: "db", sslmode: "constructor" }, {}), /sslmode is "constructor"/);
});
