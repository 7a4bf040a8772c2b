import assert from "node:assert/strict";
import type { Command } from "../../../../src/schema/words/command.ts";
import type { Json } from "../../../../src/schema/words/json.ts";
import { type Api, type Body, posted, TOKENS } from "../../../support/service/api.ts";
import {
  type Answer,
  type Answering,
  type Claimed,
  endOf,
  type Work,
  workWith,
} from "../../../support/service/api-work.ts";
import type { TestUser } from "../../../support/service/users.ts";

/** What tests of reruns do with the API. */
export interface Reruns {
  work: Work;
  /** Asks for a rerun. */
  rerun(executionId: string, body?: Body, headers?: Record<string, string>): Promise<Answer>;
  /** Begins one, and gives its id. */
  begun(executionId: string, body?: Body): Promise<string>;
  /** Asks for one that is refused with 422: its message and its detail. */
  refused(executionId: string, body: Body): Promise<{ code: unknown; message: string; detail: Body }>;
  /** The next command, which is one of this step; commands of other executions are ended meanwhile. */
  claimed(executionId: string, step: string): Promise<Claimed>;
  /** Reports the failure of a command. */
  fails(command: Claimed): Promise<void>;
  /**
   * Claims and ends everything until the execution has ended: iterations of loops as `outcome` says, null: well. Gives the calls, `step`
   * or `step[i]`, in the order of their indexes.
   */
  runs(executionId: string, outcome?: (call: string, item: Json) => "fails" | null): Promise<string[]>;
  /** Stores what a command came to under a reference, and reports that. */
  stores(command: Claimed, json: string, more?: Record<string, string>): Promise<string>;
  detail(executionId: string): Promise<Body>;
}

/** Over an open API. */
export function rerunsOf(api: Answering): Reruns {
  const work = workWith(api);
  const rerun: Reruns["rerun"] = (id, body = {}, headers = {}) =>
    work.post(`/api/executions/${id}/rerun`, body, headers);
  return {
    work,
    rerun,
    async begun(executionId, body) {
      const answer = await rerun(executionId, body);
      assert.equal(answer.status, 202, JSON.stringify(answer.body));
      return String(answer.body["execution_id"]);
    },
    async refused(executionId, body) {
      const answer = await rerun(executionId, body);
      assert.equal(answer.status, 422, JSON.stringify(answer.body));
      const { code, error, detail } = answer.body;
      return { code, message: String(error), detail: detail as Body };
    },
    async claimed(executionId, step) {
      const [command] = await work.claim("w");
      assert.deepEqual([command?.execution_id, command?.step], [executionId, step]);
      return command as Claimed;
    },
    async fails(command) {
      const events = endOf(command, null).slice(-1);
      const error = { kind: "unknown", code: "X", message: "no", retryable: false };
      const failed = events.map((event) => ({ ...event, event_type: "command.failed", error }));
      const { status, body } = await work.post("/api/events/batch", { worker: "w", events: failed });
      assert.equal(status, 202, JSON.stringify(body));
    },
    async runs(executionId, outcome = () => null) {
      const calls: string[] = [];
      for (;;) {
        const { body } = await work.get(`/api/executions/${executionId}`);
        if (body["ended_at"] !== null) return calls;
        for (const command of await work.claim("w", 100, 50)) {
          const events = endOfLoop(command, (call, item) => {
            if (command.execution_id === executionId) calls.push(call);
            return outcome(call, item);
          });
          const { status, body: answer } = await work.post("/api/events/batch", { worker: "w", events });
          assert.equal(status, 202, JSON.stringify(answer));
        }
      }
    },
    async stores(command, json, more = {}) {
      const { execution_id, command_id, attempt, step, tool } = command;
      const label = tool[0]?.label ?? "";
      const ref = `noetl://execution/${execution_id}/step/${step}/task/${label}/run/${command_id}`;
      const query = new URLSearchParams({ ref, worker: "w", command_id, attempt: String(attempt), ...more });
      const saved = await api.open.request(`/api/results?${query}`, { method: "PUT", body: json });
      const stored = (await saved.json()) as Body;
      assert.equal(saved.status, 200, JSON.stringify(stored));
      const { bytes, sha256, store } = stored;
      const meta = { content_type: "application/json", bytes, sha256 };
      const preview = { sample: "…", truncated: true, bytes };
      const reference = { ...{ kind: "result_ref", ref, store, scope: "permanent" }, meta, extracted: {}, preview };
      const events = endOfLoop(command, () => null).map((event) =>
        event["event_type"] === "task.done" ? { ...event, result: { status: "ok", reference } } : event,
      );
      const { status, body } = await work.post("/api/events/batch", { worker: "w", events });
      assert.equal(status, 202, JSON.stringify(body));
      return ref;
    },
    detail: async (executionId) => (await work.get(`/api/executions/${executionId}`)).body,
  };
}

/** What a worker reports of a command, and of each iteration in it: ended well or not, as `outcome` says. */
export function endOfLoop(command: Claimed, outcome: (call: string, item: Json) => "fails" | null): Body[] {
  const { step } = command;
  const { loop } = command as unknown as Pick<Command, "loop">;
  const [done, ended] = endOf(command, { step }) as [Body, Body];
  const error = { kind: "unknown", code: "X", message: "no", retryable: false };
  if (loop === undefined) {
    const fails = outcome(step, null) === "fails";
    return fails ? [{ ...ended, event_type: "command.failed", error }] : [done, ended];
  }
  const each = loop.items.flatMap((item, place) => {
    const iteration = loop.from + place;
    const fails = outcome(`${step}[${iteration}]`, item) === "fails";
    const result = { status: fails ? "error" : "ok", context: { task: done["task"], value: { item } } };
    const end = fails ? { event_type: "loop.iteration.failed", error } : { event_type: "loop.iteration.completed" };
    return [
      { ...done, iteration, result, task_run_id: `${command.command_id}-${iteration}` },
      { ...ended, iteration, ...end, meta: { tasks: [done["task"]] } },
    ];
  });
  return [...each, { ...ended, iterations: loop.items.length }];
}

/** A call of a user, through a gateway. */
export async function asUser(api: Pick<Api, "guarded">, user: TestUser, path: string, body?: Body): Promise<Answer> {
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const response = await api.guarded.request(path, body === undefined ? { headers } : posted(body, headers));
  return { status: response.status, body: (await response.json()) as Body, headers: response.headers };
}
