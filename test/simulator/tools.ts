import type { SteppedClock } from "../../src/adapters/stepped-clock.ts";
import { type Json, own } from "../../src/schema/json.ts";
import { failed, type ToolResult } from "../../src/schema/outcome.ts";
import type { Tool, ToolCall } from "../../src/tools/tool.ts";
import type { Ledger } from "./ledger.ts";
import type { Process } from "./process.ts";
import type { Random } from "./random.ts";
import type { Claim } from "./server.ts";

/** What the scripted tools share. */
export interface Script {
  clock: SteppedClock;
  random: Random;
  ledger: Ledger;
  /** Rows that the cursors of this run have still to give, and those that each claim was given. */
  rows: { left: Json[]; given: Map<string, Json[]> };
}

/**
 * One tool for every kind. It takes some time, has a side effect, and then does what its config says: `fail: true` always
 * fails, `flaky: 2` fails in its first two runs, else it answers `result`. Answers depend on nothing else, so that a run
 * without faults says what every run must come to. Dies and stands still where its process does.
 */
export function scriptedTool(script: Script, process: Process, claim: Claim): Tool {
  const { clock, random, ledger } = script;
  const id = `${claim.command.command_id}#${claim.attempt}`;
  const limit = claim.command.loop?.max_in_flight ?? 1;
  return {
    async run(call) {
      await process.gate();
      ledger.enter(id, limit);
      try {
        await clock.sleep(random.between(5, 3_000), call.signal);
        await process.gate();
        ledger.record(call.taskRunId, { run: call.attempt, attempt: claim.attempt });
        const result = answer(script, call);
        await process.gate();
        return result;
      } finally {
        ledger.leave(id);
      }
    },
  };
}

function answer({ rows }: Script, call: ToolCall): ToolResult {
  const { config, attempt, task, taskRunId } = call;
  if (task === "claim") {
    // Asked again under the same id, a claim gives the same rows, as one that marks its rows with that id does.
    const given = rows.given.get(taskRunId) ?? rows.left.splice(0, Number(config["command"]));
    rows.given.set(taskRunId, given);
    return { status: "ok", data: { rows: given } };
  }
  if (own(config, "fail") === true) return failed("client_error", "SCRIPTED", `'${call.step}' was told to fail`);
  if (attempt <= Number(own(config, "flaky") ?? 0)) return failed("connection", "FLAKY", "not yet");
  return { status: "ok", data: config["result"] ?? { status: "ok" } };
}
