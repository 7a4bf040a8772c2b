import assert from "node:assert/strict";
import { test } from "node:test";
import { createDatabaseClock } from "../../src/adapters/database-clock.ts";
import { systemClock } from "../../src/adapters/system-clock.ts";

const HOUR_MS = 3_600_000;

/** A server whose machine is wrong by so many ms, and a database that is right. */
function serve(wrongBy: number) {
  const start = Date.UTC(2026, 0, 1);
  let passed = 0;
  let offset = wrongBy;
  const machine = { ...systemClock, now: () => start + passed + offset };
  const clock = createDatabaseClock(machine, () => passed);
  return {
    clock,
    pass: (ms: number) => {
      passed += ms;
    },
    jump: (ms: number) => {
      offset += ms;
    },
    /** Asks the database, which answers after these ms and looks at its clock after these. */
    hear(tookMs = 0, lookedAfterMs = 0) {
      const askedAt = passed;
      passed += tookMs;
      clock.heard(start + askedAt + lookedAfterMs, askedAt, passed);
    },
    wrongBy: () => clock.now() - (start + passed),
  };
}

test("it shows the machine's time until the database's is heard, and that afterwards", () => {
  for (const wrongBy of [0, 3 * HOUR_MS, -3 * HOUR_MS]) {
    const { wrongBy: shown, hear, pass } = serve(wrongBy);
    assert.equal(shown(), wrongBy);
    pass(500);
    assert.equal(shown(), wrongBy);
    hear();
    assert.equal(shown(), 0);
    pass(HOUR_MS);
    assert.equal(shown(), 0);
  }
});

test("a machine's clock that jumps moves nothing, before the next look at the database's and after it", () => {
  const { wrongBy, hear, jump, pass } = serve(0);
  hear();
  for (const ms of [5 * HOUR_MS, -9 * HOUR_MS, 90_000]) {
    jump(ms);
    assert.equal(wrongBy(), 0);
    pass(700);
    hear();
    assert.equal(wrongBy(), 0);
  }
});

test("an answer says no more than that the moment was in between: where that fits, the clock stays as it is", () => {
  const { wrongBy, hear } = serve(0);
  hear();
  hear(5_000, 0);
  hear(5_000, 5_000);
  assert.equal(wrongBy(), 0);
  const late = serve(HOUR_MS);
  late.hear(1_000, 400);
  assert.ok(Math.abs(late.wrongBy()) <= 1_000, `wrong by ${late.wrongBy()} ms`);
  late.hear();
  assert.equal(late.wrongBy() <= 20 && late.wrongBy() >= -20, true);
});

test("it stays by 20 ms, and goes by 21", () => {
  for (const [wrongBy, left] of [
    [20, 20],
    [-20, -20],
    [21, 0],
    [-21, 0],
  ] as const) {
    const server = serve(wrongBy);
    server.hear();
    assert.equal(server.wrongBy(), left);
  }
});

test("it is an integer, and sleeps as the machine does", async () => {
  const clock = createDatabaseClock();
  assert.ok(Number.isInteger(clock.now()));
  assert.ok(Math.abs(clock.now() - Date.now()) < 1_000);
  const stop = new AbortController();
  stop.abort("over");
  await assert.rejects(clock.sleep(1, stop.signal), (reason) => reason === "over");
});
