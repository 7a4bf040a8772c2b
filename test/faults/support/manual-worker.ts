import assert from "node:assert/strict";
import { type Claimed, endOf } from "../../support/service/api-work.ts";
import type { Answer, Client } from "./client.ts";

/** A worker that does what the test says. */
export interface ManualWorker {
  readonly name: string;
  /** A command of this execution. What it claims of others on the way is kept for when it is asked for. */
  claim(executionId: string): Promise<Claimed>;
  /** Reports that a command has ended well, without asking for more: the batch is only accepted with the answer. */
  end(command: Claimed, key?: string): Promise<Answer>;
}

/** Registers it. */
export async function startManualWorker(client: Client, name: string): Promise<ManualWorker> {
  const { status } = await client.call("POST", "/api/worker/pool/register", { name, capacity: 100 });
  assert.equal(status, 200);
  let kept: Claimed[] = [];
  return {
    name,
    async claim(executionId) {
      for (;;) {
        const command = kept.find((one) => one.execution_id === executionId);
        kept = kept.filter((one) => one !== command);
        if (command !== undefined) return command;
        const body = { worker: name, limit: 1, wait_ms: 10_000 };
        const answer = await client.call("POST", "/api/commands/claim", body);
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        assert.notEqual(answer.body.commands.length, 0, "There was no command within ten seconds");
        kept.push(...answer.body.commands);
      }
    },
    end: (command, key) => client.report(name, endOf(command, { step: command.step }), {}, key),
  };
}
