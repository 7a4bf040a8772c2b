import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Database, transaction } from "../../../src/repositories/database/database.ts";
import {
  isRetryable,
  unavailable,
  unreachable,
  violatedConstraint,
} from "../../../src/repositories/database/error-codes.ts";
import { open, openEmptyDatabase } from "../service-database.ts";

let database: Database & { url: string };
before(async () => {
  database = await openEmptyDatabase();
  await database.sql`create table place (id int primary key, taken int)`;
  await database.sql`insert into place values (1, 0), (2, 0)`;
});

const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test("a statement that takes too long means: busy now, try again, and the server was reached", async () => {
  const hasty = open(database.url, { statementMs: 50, connectionsMax: 1 });
  const error = await errorOf(hasty.sql`select pg_sleep(60)`);
  const told = unavailable(error);
  assert.equal(told?.code, "UNAVAILABLE");
  assert.match(told?.message ?? "", /did not answer in time/);
  assert.equal(unreachable(error), undefined);
  assert.equal(isRetryable(error), false);
});

test("a lock that is not to be had in time means the same", async () => {
  const error = await transaction(database, async ({ sql }) => {
    await sql`select from place where id = 1 for update`;
    return await errorOf(
      transaction(database, async (tx) => {
        await tx.sql`set local lock_timeout = 20`;
        await tx.sql`update place set taken = 1 where id = 1`;
      }),
    );
  });
  assert.equal(unavailable(error)?.code, "UNAVAILABLE");
  assert.equal(isRetryable(error), false);
});

test("of two transactions that wait for each other one may simply run again", async () => {
  const firsts = new Map<number, () => void>();
  const bothHave = Promise.all([1, 2].map((id) => new Promise<void>((resolve) => firsts.set(id, resolve))));
  const work = (mine: number, other: number) =>
    errorOf(
      transaction(database, async ({ sql }) => {
        await sql`set local deadlock_timeout = '10ms'`;
        await sql`update place set taken = 1 where id = ${mine}`;
        firsts.get(mine)?.();
        await bothHave;
        await sql`update place set taken = 1 where id = ${other}`;
      }),
    );
  const errors = (await Promise.all([work(1, 2), work(2, 1)])).filter((error) => error !== undefined);
  assert.equal(errors.length, 1);
  assert.equal(isRetryable(errors[0]), true);
  assert.equal(unavailable(errors[0])?.code, "UNAVAILABLE");
});

test("a server that is not there means: not reached", async () => {
  const nobody = open("postgres://nobody@127.0.0.1:1/none");
  const error = await errorOf(nobody.sql`select 1`);
  assert.match(unavailable(error)?.message ?? "", /cannot be reached/);
  assert.equal(unreachable(error)?.code, "UNAVAILABLE");
});

test("a refused row and an error in the program are faults and not an outage", async () => {
  const refused = await errorOf(database.sql`insert into place values (1, 0)`);
  for (const error of [refused, new Error("no"), undefined]) {
    assert.equal(unavailable(error), undefined);
    assert.equal(isRetryable(error), false);
  }
  assert.equal(violatedConstraint(refused), "place_pkey");
  assert.equal(violatedConstraint(new Error("no")), undefined);
});
