import { randomBytes } from "node:crypto";
import { DBOS } from "@dbos-inc/dbos-sdk";
import { answerRequests } from "./requests.mjs";

// The workloads on DBOS: a library, so that this one process starts the workflows and runs their steps. First argument:
// the database. Everything else is as it comes.

const step = (name, body) => DBOS.runStep(async () => body(), { name });

const workflows = {
  chain: async ({ steps }) => {
    for (let index = 0; index < steps; index += 1) await step(`s${index}`, () => index);
  },
  fan: async ({ items }) => {
    await Promise.all(Array.from({ length: items }, (_, index) => step("item", () => index)));
  },
  payload: async ({ steps, bytes }) => {
    for (let index = 0; index < steps; index += 1) {
      await step(`s${index}`, () => ({ text: randomBytes(bytes / 2).toString("hex") }));
    }
  },
};

DBOS.setConfig({ name: "bench", systemDatabaseUrl: process.argv[2], logLevel: "error", runAdminServer: false });
const registered = Object.fromEntries(
  Object.entries(workflows).map(([name, workflow]) => [name, DBOS.registerWorkflow(workflow, { name })]),
);
await DBOS.launch();
answerRequests({}, (work) => {
  // Called as a function: with a `this`, DBOS takes it for a method.
  const workflow = registered[work.kind];
  return workflow(work);
});
