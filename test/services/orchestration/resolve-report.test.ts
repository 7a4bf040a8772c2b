import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { unavailable } from "../../../src/repositories/database/error-codes.ts";
import type { ReportedEvent } from "../../../src/schema/api/event-input.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { reportEvents } from "../../../src/services/orchestration/resolve-report.ts";

const event: ReportedEvent = { type: "command.started", at: 0, command_id: "2", attempt: 1, step: "start" };
const asked = {
  ...{ caller: "worker", idempotencyKey: "k", bodySha256: "", worker: "w" },
  events: [{ executionId: "1", event }],
};
const cut = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
const noDatabase = {} as Database;

function reporting(thrown: unknown) {
  return reportEvents({ database: noDatabase, orchestrator: { report: () => Promise.reject(thrown) } });
}

test("a batch that cannot be written because the database is away is refused with enqueue_error", async () => {
  for (const thrown of [cut, unavailable(cut)]) {
    await assert.rejects(reporting(thrown)(asked), (error: unknown) => {
      assert.ok(error instanceof FlowError);
      assert.equal(error.code, "enqueue_error");
      assert.match(error.message, /could not be written: The database cannot be reached.*its idempotency key$/);
      return true;
    });
  }
});

test("every other refusal stays what it is", async () => {
  for (const thrown of [new FlowError("ack_timeout", "late"), new FlowError("CONFLICT", "lost"), new Error("fault")]) {
    await assert.rejects(reporting(thrown)(asked), (error) => error === thrown);
  }
});
