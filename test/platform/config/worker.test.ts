import assert from "node:assert/strict";
import { test } from "node:test";
import { isGiven, loadConfig, templateEnvironment } from "../../../src/platform/config/config.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";

test("a worker has defaults for everything", () => {
  const { workerName, workerCapacity, workerLabels, workerHeartbeatMs, workerDrainMs } = loadConfig({});
  assert.deepEqual(
    { workerName, workerCapacity, workerLabels, workerHeartbeatMs, workerDrainMs },
    { workerName: undefined, workerCapacity: 64, workerLabels: {}, workerHeartbeatMs: 15_000, workerDrainMs: 20_000 },
  );
});

test("its settings are read into values of our units", () => {
  const config = loadConfig({
    FLOW_WORKER_NAME: " left ",
    FLOW_WORKER_CAPACITY: "8",
    FLOW_WORKER_LABELS: " gpu = yes, zone=a=b ,,",
    FLOW_WORKER_HEARTBEAT_SECONDS: "0.5",
    FLOW_WORKER_DRAIN_SECONDS: "60",
  });
  assert.deepEqual([config.workerName, config.workerCapacity], ["left", 8]);
  assert.deepEqual(config.workerLabels, { gpu: "yes", zone: "a=b" });
  assert.ok(Object.isFrozen(config.workerLabels));
  assert.deepEqual([config.workerHeartbeatMs, config.workerDrainMs], [500, 60_000]);
});

for (const [name, text] of [
  ["FLOW_WORKER_NAME", "x".repeat(256)],
  ["FLOW_WORKER_NAME", "a\u0007b"],
  ["FLOW_WORKER_CAPACITY", "0"],
  ["FLOW_WORKER_LABELS", "gpu"],
  ["FLOW_WORKER_LABELS", "=yes"],
  ["FLOW_WORKER_LABELS", "a b=c"],
  ["FLOW_WORKER_HEARTBEAT_SECONDS", "never"],
  ["FLOW_WORKER_DRAIN_SECONDS", "-1"],
] as const) {
  test(`${name}=${JSON.stringify(text.slice(0, 9))} is refused by name`, () => {
    assert.throws(
      () => loadConfig({ [name]: text }),
      (error) => error instanceof FlowError && error.code === "INVALID_SETTING" && error.message.startsWith(name),
    );
  });
}

test("a setting that is empty was not given", () => {
  assert.equal(isGiven(loadConfig({ FLOW_WORKER_TOOLS: " " }), "workerTools"), false);
  assert.equal(isGiven(loadConfig({ FLOW_WORKER_TOOLS: "all" }), "workerTools"), true);
});

test("templates see the variables that are allowed, as far as they are set", () => {
  const environment = { FLOW_TEMPLATE_ENV: "REGION,ABSENT", REGION: "eu", PASSWORD: "canary" };
  assert.deepEqual(templateEnvironment(loadConfig(environment)), { REGION: "eu" });
});

test("the sandbox of task code has defaults, and takes folders by their whole paths", () => {
  const { taskIsolation, taskNetwork, taskReadable, taskMemoryMib, taskScratchMib, taskProcesses } = loadConfig({});
  assert.deepEqual([taskIsolation, taskNetwork, taskReadable], ["auto", undefined, []]);
  assert.deepEqual([taskMemoryMib, taskScratchMib, taskProcesses], [4_096, 512, 512]);
  const given = loadConfig({
    FLOW_TASK_ISOLATION: "STRICT",
    FLOW_TASK_NETWORK: "open",
    FLOW_TASK_READABLE: "/opt/models, /data",
  });
  assert.deepEqual(given.taskReadable, ["/opt/models", "/data"]);
  assert.deepEqual([given.taskIsolation, given.taskNetwork], ["strict", "open"]);
  const folderOf = (text: string) => loadConfig({ FLOW_TASK_FOLDER: text, FLOW_TASK_HIDDEN: "/srv/a,/srv/b" });
  assert.deepEqual([folderOf("/srv").taskFolder, folderOf("none").taskFolder], ["/srv", undefined]);
  assert.deepEqual(folderOf("/srv").taskHidden, ["/srv/a", "/srv/b"]);
});

for (const [name, text] of [
  ["FLOW_TASK_ISOLATION", "some"],
  ["FLOW_TASK_NETWORK", "closed"],
  ["FLOW_TASK_READABLE", "models"],
  ["FLOW_TASK_FOLDER", "work"],
  ["FLOW_TASK_HIDDEN", ".env"],
  ["FLOW_TASK_MEMORY_MIB", "0"],
] as const) {
  test(`${name}=${text} is refused`, () => {
    assert.throws(() => loadConfig({ [name]: text }), new RegExp(`${name} must be`));
  });
}
