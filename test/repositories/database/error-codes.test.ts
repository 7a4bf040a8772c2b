import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { before, test } from "node:test";
import postgres from "postgres";
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

/** What sockets, TLS and the driver say of a connection that is gone, or cannot be made now. */
const CUT_OFF = [
  ..."ECONNRESET EPIPE ETIMEDOUT ECONNABORTED ECONNREFUSED ENOTCONN EPROTO".split(" "),
  ..."EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN ENETRESET EADDRNOTAVAIL ENOBUFS EMFILE ENFILE ENOENT".split(" "),
  ..."ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA".split(" "),
  ..."ERR_SOCKET_CLOSED ERR_SOCKET_CLOSED_BEFORE_CONNECTION ERR_STREAM_DESTROYED ERR_STREAM_WRITE_AFTER_END".split(" "),
  ..."ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR ERR_TLS_HANDSHAKE_TIMEOUT".split(
    " ",
  ),
  ..."CONNECT_TIMEOUT CONNECTION_CLOSED CONNECTION_DESTROYED CONNECTION_ENDED SASL_SIGNATURE_MISMATCH".split(" "),
];
/** What a server says as it ends a session. */
const ENDED = "08006 08P01 57P01 57P02 57P03 57P04 57P05 53300 28P01 3D000 55000".split(" ");

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

test("a session that ends while the driver is about to write means: not reached, for what it was about to write and for the next", async () => {
  let socket: Socket | undefined;
  const made = (message: unknown) => {
    socket = (message as { socket: Socket }).socket;
  };
  subscribe("net.client.socket", made);
  const one = open(database.url, { connectionsMax: 1 });
  await one.sql`select 1`;
  // Between this callback and the one that writes comes the end of the connection.
  const cut = await new Promise((resolve) => {
    setImmediate(() => {
      socket?.destroy();
      resolve(errorOf(one.sql`select 2`));
    });
  });
  assert.equal(unavailable(cut)?.code, "UNAVAILABLE", String(cut));
  // The driver has a login to write too, and never writes it.
  const next = await errorOf(one.sql`select 3`);
  assert.equal(unavailable(next)?.code, "UNAVAILABLE", String(next));
  unsubscribe("net.client.socket", made);
  await untilAnswered(one);
});

async function untilAnswered({ sql }: Database) {
  for (let tries = 1; ; tries += 1) {
    const error = await errorOf(sql`select 4`);
    if (error === undefined) return;
    assert.equal(unavailable(error)?.code, "UNAVAILABLE", String(error));
    assert.ok(tries < 20);
  }
}

test("every code of a connection that is cut off means: not reached, as it is and as the builder wraps it", () => {
  for (const code of CUT_OFF) {
    const error = Object.assign(new Error(`write ${code}`), { code });
    assert.equal(unreachable(error)?.code, "UNAVAILABLE", code);
    assert.equal(unreachable(new Error("Failed query", { cause: error }))?.code, "UNAVAILABLE", code);
  }
  for (const code of ENDED) {
    const error = Object.assign(new postgres.PostgresError("FATAL"), { code });
    assert.equal(unreachable(error)?.code, "UNAVAILABLE", code);
  }
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
