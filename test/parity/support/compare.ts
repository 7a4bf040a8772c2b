import assert from "node:assert/strict";
import { runLocally, type Surroundings } from "./local-run.ts";
import type { Outcome } from "./outcome.ts";
import type { Scenario } from "./scenario.ts";
import type { RunningService } from "./service-run.ts";

/** Runs the scenario in this process and on the service, and fails where the two differ. Gives how it ended. */
export async function compare(
  scenario: Scenario,
  surroundings: Surroundings,
  service: Pick<RunningService, "run">,
): Promise<Outcome> {
  const local = await runLocally(scenario, surroundings);
  assert.equal(local.status, scenario.ends, `The local run: ${JSON.stringify(local.error)}`);
  const distributed = await service.run(scenario);
  assert.equal(distributed.status, local.status, JSON.stringify(distributed.error));
  assert.deepEqual(distributed.error, local.error);
  assert.equal(distributed.result, local.result);
  assert.deepEqual(distributed.shown, local.shown);
  assert.equal(distributed.events.length, local.events.length, "executions");
  for (const [index, lines] of local.events.entries()) checkEvents(distributed.events[index] ?? [], lines);
  return local;
}

/** Says the first difference: two whole logs would be pages of text. */
function checkEvents(distributed: readonly string[], local: readonly string[]): void {
  const at = local.findIndex((line, index) => line !== distributed[index]);
  const place = at === -1 ? local.length : at;
  assert.equal(distributed[place], local[place], `event ${place + 1} of ${local.length}`);
}
