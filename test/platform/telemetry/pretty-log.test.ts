import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "../../../src/platform/telemetry/logger.ts";
import { prettyLog } from "../../../src/platform/telemetry/pretty-log.ts";

function written(log: (logger: ReturnType<typeof createLogger>) => void, options = {}, base = {}): string {
  let text = "";
  const stream = {
    write(line: string) {
      text += line;
      return true;
    },
  };
  log(createLogger("debug", prettyLog(stream, { colors: false, stacks: false, ...options }), base));
  return text.replace(/^\d\d:\d\d:\d\d /gm, "<time> ");
}

test("a line has the time of day, what happened, and what it is about", () => {
  const text = written((logger) => logger.info({ path: "etl/load", version: 3, applied: ["a", "b"] }, "registered"));
  assert.equal(text, '<time> registered path=etl/load version=3 applied=["a","b"]\n');
});

test("the level is shown where it matters, and a worker beside the server is named", () => {
  assert.equal(
    written((logger) => logger.warn({}, "slow")),
    "<time> warning slow\n",
  );
  assert.equal(
    written((logger) => logger.debug({}, "so far"), {}, { role: "worker" }),
    "<time> debug worker: so far\n",
  );
  assert.equal(
    written((logger) => logger.info({}, "hello"), {}, { role: "server" }),
    "<time> hello\n",
  );
});

test("what the message says is not said again, and long values are cut", () => {
  assert.equal(
    written((logger) => logger.info({ interval: 60 }, "started: interval=60")),
    "<time> started: interval=60\n",
  );
  const long = written((logger) => logger.info({ text: "x".repeat(200) }, "long"));
  assert.ok(long.length < 110 && long.endsWith("…\n"), long);
});

test("an error is shown with its cause, and with its stack only on request", () => {
  const error = new Error("Cannot store", { cause: Object.assign(new Error("no room"), { code: "ENOSPC" }) });
  const told = written((logger) => logger.error({ err: error }, "a result was lost"));
  assert.equal(told, "<time> error a result was lost: Cannot store: no room (ENOSPC)\n");
  assert.match(
    written((logger) => logger.error({ err: error }, "lost"), { stacks: true }),
    /\n {4}at /,
  );
});

test("nothing that others wrote steers the terminal, and secrets stay masked", () => {
  const text = written((logger) => logger.info({ path: "a\u001b[2Jb\u009b", token: "hunter22" }, "line\nbreak"));
  assert.equal(text, "<time> line\\u000abreak path=a\\u001b[2Jb\\u009b token=[secret]\n");
});

test("colours are there where they are wanted, and text that is no JSON passes", () => {
  assert.match(
    written((logger) => logger.warn({ a: 1 }, "slow"), { colors: true }),
    /\u001b\[33mwarning\u001b\[0m slow/,
  );
  let text = "";
  const stream = {
    write(line: string) {
      text += line;
      return true;
    },
  };
  prettyLog(stream, { colors: false, stacks: false }).write("not json\n");
  assert.equal(text, "not json\n");
});
