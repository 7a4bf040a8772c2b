import assert from "node:assert/strict";
import { type Api, type Body, posted, TOKENS } from "./api.ts";

/** An answer of the API. */
export interface Answer {
  status: number;
  body: Body;
  headers: Headers;
}

/** A command as a claim gives it, as far as tests look at it. */
export interface Claimed extends Body {
  command_id: string;
  execution_id: string;
  step: string;
  attempt: number;
  tool: { label: string }[];
}

/** What a test does with the API: as an operator, and as a worker that runs nothing and reports what it is told to. */
export interface Work {
  get(path: string): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  send(method: string, path: string, body?: string): Promise<Answer>;
  /** Registers a playbook whose `workflow` is given as YAML lines. */
  register(path: string, workflow: string, more?: string): Promise<void>;
  /** Starts it and gives the execution's id. */
  execute(path: string, more?: Body): Promise<string>;
  /** Claims up to `limit` commands, waiting for the first, by default up to five seconds. */
  claim(worker: string, limit?: number, waitMs?: number): Promise<Claimed[]>;
  /** Reports the end of a command, each task with the value `value`. */
  finish(worker: string, command: Claimed, value?: unknown): Promise<Answer>;
  /** Claims and finishes until the execution has ended; gives its detail. */
  runToEnd(executionId: string, worker?: string): Promise<Body>;
}

/** What answers calls of operators: an app of this process, or a server in one of its own. */
export interface Answering {
  open: { request(path: string, init?: RequestInit): Response | Promise<Response> };
}

/** Works with an open API. */
export function workWith({ open }: Answering): Work {
  const send = async (path: string, init: RequestInit): Promise<Answer> => {
    const response = await open.request(path, init);
    const text = await response.text();
    return { status: response.status, body: text === "" ? {} : JSON.parse(text), headers: response.headers };
  };
  const work: Work = {
    get: (path) => send(path, {}),
    post: (path, body = {}, headers = {}) => send(path, posted(body, headers)),
    send: (method, path, body) => send(path, { method, ...(body !== undefined && { body }) }),
    async register(path, workflow, more = "") {
      const name = path.split("/").at(-1);
      const content = `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: ${name}, path: ${path}${more} }\nworkload: { who: world }\nworkflow:\n${workflow}`;
      const { status, body } = await work.post("/api/catalog/register", { content });
      assert.equal(status, 200, JSON.stringify(body));
    },
    async execute(path, more = {}) {
      const { status, body } = await work.post("/api/execute", { path, ...more });
      assert.equal(status, 200, JSON.stringify(body));
      return String(body["execution_id"]);
    },
    async claim(worker, limit = 1, waitMs = 5_000) {
      const { status, body } = await work.post("/api/commands/claim", { worker, limit, wait_ms: waitMs });
      assert.equal(status, 200, JSON.stringify(body));
      return body["commands"] as Claimed[];
    },
    finish: (worker, command, value = null) =>
      work.post("/api/events/batch", { worker, events: endOf(command, value) }),
    async runToEnd(executionId, worker = "w") {
      for (;;) {
        const { body } = await work.get(`/api/executions/${executionId}`);
        if (body["ended_at"] !== null) return body;
        // A report is answered before its consequences are decided: there may be no further command to wait for.
        for (const command of await work.claim(worker, 1, 50)) {
          const { status, body: answer } = await work.finish(worker, command, { step: command.step });
          assert.equal(status, 202, JSON.stringify(answer));
        }
      }
    },
  };
  return work;
}

/** The events with which a worker reports that a command has ended well. */
export function endOf({ command_id, execution_id, attempt, step, tool }: Claimed, value: unknown = null): Body[] {
  const claim = { command_id, execution_id, attempt, step };
  const done = tool.map(({ label }) => ({
    ...claim,
    event_type: "task.done",
    task: label,
    task_run_id: `${command_id}-${label}`,
    result: { status: "ok", context: { task: label, value } },
    duration_ms: 1,
  }));
  return [...done, { ...claim, event_type: "command.completed" }];
}

/** Two steps, one after the other. */
export const TWO_STEPS = `  - step: start
    tool: { kind: noop }
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop }
`;

/** One step. */
export const ONE_STEP = `  - step: start
    tool: { kind: noop }
`;

/** What a worker sends that has claimed a command of this execution; claims it unless one is claimed already. */
export async function claimOf(
  { database, service }: Pick<Api, "database" | "service">,
  executionId: string,
): Promise<{ authorization: string; "x-flow-claim": string }> {
  const [open] = await database.sql<{ id: string; status: string; attempt: number }[]>`
    select command_id as id, status, attempt from flow.command
    where execution_id = ${executionId} and status in ('PENDING', 'CLAIMED', 'RUNNING') order by command_id limit 1`;
  assert.ok(open, `execution ${executionId} has no open command`);
  const claim = open.status === "PENDING" ? await service.workers.claimOne(open.id, "worker-of-tests") : open;
  const secret = service.claimSecrets.ofClaim({ commandId: open.id, attempt: claim.attempt });
  return { authorization: `Bearer ${TOKENS.worker}`, "x-flow-claim": secret };
}
