import assert from "node:assert/strict";
import { before, test } from "node:test";
import { EVENT_BYTES_MAX } from "../../../src/schema/api/event-input.ts";
import { openApi } from "../../support/service/api.ts";
import { endOf, ONE_STEP, workWith } from "../../support/service/api-work.ts";

// However large a batch may be, an event carries an envelope and no body (interface specification, Standing rules).

const api = await openApi({
  FLOW_BATCH_BYTES_MAX: String(8 * 1024 * 1024),
});
const work = workWith(api);
before(() => work.register("e/one", ONE_STEP));

async function claimed() {
  await work.execute("e/one");
  const [command] = await work.claim("w", 1);
  assert.ok(command);
  return command;
}

test("an event that is larger than an event may be is 422, and says so", async () => {
  const command = await claimed();
  const events = endOf(command, "x".repeat(EVENT_BYTES_MAX));
  const { status, body } = await work.post("/api/events/batch", { worker: "w", events });
  assert.deepEqual([status, body["code"]], [422, "INVALID_INPUT"]);
  assert.match(
    JSON.stringify(body["detail"]),
    /result\.context.*is the most: store what is large, and send its reference/,
  );
  const [first] = events;
  assert.equal((await work.post("/api/events", { ...first, worker: "w" })).status, 422);
});

test("a batch that is larger than an event may be is taken when each of its events is small enough", async () => {
  const command = await claimed();
  const text = "x".repeat(EVENT_BYTES_MAX - 10_000);
  const [done, end] = endOf(command, text);
  const earlier = { ...done, task: "first", result: { status: "ok", context: { task: "first", value: text } } };
  const { status, body } = await work.post("/api/events/batch", { worker: "w", events: [earlier, done, end] });
  assert.equal(status, 202, JSON.stringify(body).slice(0, 500));
});
