import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { inspect } from "node:util";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import { createLogger } from "../../../src/platform/telemetry/logger.ts";

function open(level: "debug" | "info" = "info") {
  const stream = new PassThrough();
  const logger = createLogger(level, stream);
  const lines = () =>
    String(stream.read() ?? "")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { logger, lines };
}

test("a line is one JSON object with its level by name, its time, its fields and its message", () => {
  const { logger, lines } = open();
  logger.info({ execution_id: "7" }, "began\nanew");
  const [line] = lines();
  assert.deepEqual([line?.["level"], line?.["execution_id"], line?.["msg"]], ["info", "7", "began\nanew"]);
  assert.match(String(line?.["time"]), /^\d{4}-\d\d-\d\dT.*Z$/);
});

test("lines below the level are not written", () => {
  const { logger, lines } = open("info");
  logger.debug({}, "hidden");
  logger.warn({}, "shown");
  assert.deepEqual(
    lines().map(({ msg }) => msg),
    ["shown"],
  );
});

test("control characters in a line do not reach the terminal", () => {
  const stream = new PassThrough();
  const logger = createLogger("info", stream);
  const hostile = "\u001b[2J\u009b2J\u0085\u007f\u2028\u202e\u2066\u0007 Grüße \u{1f642}";
  logger.error({ step: hostile, [hostile]: 1, err: new Error(hostile) }, hostile);
  const text = String(stream.read());
  assert.doesNotMatch(text.trimEnd(), /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/);
  const line = JSON.parse(text) as { step: string; msg: string; err: { message: string } };
  assert.deepEqual([line.step, line.msg, line.err.message], [hostile, hostile, hostile]);
  assert.match(text, /Grüße/);
});

test("a secret prints as [secret] however it gets into a line", () => {
  const { logger, lines } = open();
  const secret = createSecret("canary");
  logger.info(
    { token: "canary", headers: { authorization: "Bearer canary" }, config: { url: secret }, secret },
    `${secret}`,
  );
  const text = JSON.stringify(lines());
  assert.doesNotMatch(text, /canary/);
  assert.match(text, /\[secret\]/);
  assert.doesNotMatch(inspect({ secret }) + JSON.stringify({ secret }) + String(secret), /canary/);
  assert.equal(secret.reveal(), "canary");
});

test("an error is written with its cause, but without the values of a statement", () => {
  const { logger, lines } = open();
  const cause = Object.assign(new Error("relation does not exist"), { code: "42P01", parameters: ["canary"] });
  const error = new Error("Failed query: select 1\nparams: canary,7", { cause });
  logger.error({ err: error }, "failed");
  const text = JSON.stringify(lines());
  assert.match(text, /Failed query: select 1/);
  assert.match(text, /relation does not exist/);
  assert.match(text, /42P01/);
  assert.doesNotMatch(text, /canary/);
});
