import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startWorkerProcess, type WorkerProcess } from "../../../src/roles/worker/worker-process.ts";
import { folderWith } from "../../support/service/cli-process.ts";

interface Started {
  worker: WorkerProcess;
  /** Resolves when a line of the log begins with this. */
  untilLog(start: string): Promise<void>;
  logged: string[];
}

/** Starts a script in the worker's place. */
async function startScript(context: TestContext, script: string, stopMs = 10_000): Promise<Started> {
  const folder = await folderWith(context, {});
  const entry = join(folder, "entry.mjs");
  await writeFile(entry, script);
  const logged: string[] = [];
  let look = () => {};
  const log = (_: unknown, message: string) => {
    logged.push(message);
    look();
  };
  const logger = { debug: log, info: log, warn: log, error: log };
  const worker = startWorkerProcess({
    beforeStart: async () => undefined,
    entry,
    folder,
    environment: { PATH: process.env["PATH"] },
    stopMs,
    logger,
  });
  context.after(() => worker.stop());
  const untilLog = (start: string) =>
    new Promise<void>((resolve) => {
      look = () => logged.some((line) => line.startsWith(start)) && resolve();
      look();
    });
  return { worker, untilLog, logged };
}

const READY = 'process.send("ready");';

test("a worker that dies is started again", async (t) => {
  // The first one leaves a file and dies; the second one finds it.
  const script = `import { existsSync, writeFileSync } from "node:fs";
    if (existsSync("died")) { ${READY} } else { writeFileSync("died", ""); process.exit(7); }`;
  const { worker, logged } = await startScript(t, script);
  await worker.ready;
  assert.deepEqual(logged, ["the worker died (exit code 7) and is started again"]);
});

test("a worker that cannot use its settings is not started again, and its waiting parent gets the error", async (t) => {
  const { worker, logged } = await startScript(t, "process.exit(2);");
  await assert.rejects(worker.ready, { code: "INVALID_SETTING" });
  await worker.stop();
  assert.deepEqual(logged, []);
});

test("to stop it is to close the channel: it ends by itself, and is not started again", async (t) => {
  const script = `process.on("disconnect", () => process.exit(3)); ${READY}`;
  const { worker, logged } = await startScript(t, script);
  await worker.ready;
  await Promise.all([worker.stop(), worker.stop()]);
  assert.deepEqual(logged, []);
});

test("a worker that does not end in time is killed", async (t) => {
  const script = `setInterval(() => {}, 1000); ${READY}`;
  const { worker, untilLog } = await startScript(t, script, 50);
  await worker.ready;
  const stopped = worker.stop();
  await untilLog("the worker did not end in time and is killed");
  await stopped;
});

test("a worker that is between two starts is not started after the stop", async (t) => {
  const { worker, untilLog, logged } = await startScript(t, "process.exit(1);");
  await untilLog("the worker died");
  await worker.stop();
  assert.equal(logged.length, 1);
});
