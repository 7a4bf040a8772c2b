import { type Json, own } from "../../src/schema/words/json.ts";
import { failed, type ToolResult } from "../../src/schema/words/outcome.ts";
import type { Tool, ToolCall } from "../../src/tools/contract/tool.ts";
import type { Ledger } from "./ledger.ts";
import type { Process, World } from "./process.ts";

/** What the scripted tools share. */
export interface Script extends Pick<World, "random"> {
  ledger: Ledger;
  /** Rows that the cursors of each execution have still to give, and those that each claim was given. */
  rows: { all: readonly Json[]; left: Map<string, Json[]>; given: Map<string, Json[]> };
}

/** A claim as a tool's side effects are counted. */
export interface ScriptedClaim {
  attempt: number;
  /** Tools that may run at a time under it. */
  limit: number;
}

/**
 * One tool for every kind. It takes some time, has a side effect, and then does what its config says: `fail: true` always
 * fails, `flaky: 2` fails in its first two runs, else it answers `result`; `tells: 5` tells five times how far it is. Answers depend on nothing else, so that a run
 * without faults says what every run must come to. Dies and stands still where its process does.
 */
export function scriptedTool(
  script: Script,
  process: Pick<Process, "clock">,
  claimOf: (commandId: string) => ScriptedClaim,
): Tool {
  const { random, ledger } = script;
  return {
    async run(call) {
      const commandId = call.taskRunId.split("-")[0] ?? "";
      const { attempt, limit } = claimOf(commandId);
      const id = `${commandId}#${attempt}`;
      ledger.enter(id, limit);
      try {
        const workMs = random.between(5, 3_000);
        const parts = Number(own(call.config, "tells") ?? 0) + 1;
        for (let part = 1; part <= parts; part += 1) {
          await process.clock.sleep(workMs / parts, call.signal);
          if (part < parts) call.progress?.({ part });
        }
        ledger.record(call.taskRunId, { run: call.attempt, attempt });
        return answer(script, call);
      } finally {
        ledger.leave(id);
      }
    },
  };
}

function answer({ rows }: Script, call: ToolCall): ToolResult {
  const { config, attempt, task, taskRunId, executionId } = call;
  if (task === "claim") {
    const left = rows.left.get(executionId) ?? [...rows.all];
    rows.left.set(executionId, left);
    // Asked again under the same id, a claim gives the same rows, as one that marks its rows with that id does.
    const given = rows.given.get(taskRunId) ?? left.splice(0, Number(config["command"]));
    rows.given.set(taskRunId, given);
    return { status: "ok", data: { rows: given } };
  }
  if (own(config, "fail") === true) return failed("client_error", "SCRIPTED", `'${call.step}' was told to fail`);
  if (attempt <= Number(own(config, "flaky") ?? 0)) return failed("connection", "FLAKY", "not yet");
  return { status: "ok", data: config["result"] ?? { status: "ok" } };
}
