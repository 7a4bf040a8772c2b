import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ROOT } from "../examples/run-flow.ts";
import { compare } from "./support/compare.ts";
import { runLocally } from "./support/local-run.ts";
import type { Outcome } from "./support/outcome.ts";
import type { Scenario } from "./support/scenario.ts";

/* The comparison itself: it must see what playbooks and people see. */

const surroundings = { folder: `${ROOT}/test/parity/playbooks`, credentialsFile: "/none", env: {} };
const scenario: Scenario = { name: "routing", path: "parity/routing", order: "parts", ends: "COMPLETED" };

let outcome: Outcome;
before(async () => {
  outcome = await runLocally(scenario, surroundings);
});

/** Compares with a runtime that differs in this. */
function differing(change: (outcome: Outcome) => Partial<Outcome>): Promise<unknown> {
  const run = async () => ({ ...outcome, ...change(structuredClone(outcome)) });
  return compare(scenario, surroundings, { run });
}

test("two identical runs compare as equal", async () => void (await differing(() => ({}))));

for (const [what, change] of [
  ["another status", () => ({ status: "FAILED" })],
  ["keys of the result in another order", ({ result }) => ({ result: reversed(result) })],
  ["what is shown of a step", ({ shown }) => ({ shown: { ...shown, end: "{}" } })],
  ["an error", () => ({ error: { kind: "unknown" } })],
  ["a missing event", ({ events }) => ({ events: events.map((lines) => lines.toSpliced(4, 1)) })],
  ["an event too many", ({ events }) => ({ events: events.map((lines) => [...lines, "one more"]) })],
  ["an event at another place", ({ events }) => ({ events: events.map((lines) => swapped(lines)) })],
  ["an execution too many", ({ events }) => ({ events: [...events, ...events] })],
] satisfies [string, (outcome: Outcome) => Partial<Outcome>][]) {
  test(`${what} is a difference`, () => assert.rejects(differing(change), { name: "AssertionError" }));
}

test("a run that ends in an unexpected way is not a success, even if it does so on both runtimes", async () => {
  const run = async () => outcome;
  await assert.rejects(compare({ ...scenario, ends: "FAILED" }, surroundings, { run }), /The local run/);
});

function reversed(result: string): string {
  return JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(result) as object).reverse()));
}

function swapped([first = "", second = "", ...rest]: readonly string[]): string[] {
  return [second, first, ...rest];
}
