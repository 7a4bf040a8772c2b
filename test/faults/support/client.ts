import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Claimed } from "../../support/service/api-work.ts";
import { until } from "./until.ts";

/**
 * What answers have, as far as these tests look at it. Each answer has some of it: what a test reads it compares at once.
 */
export interface AnswerBody {
  status: string;
  code: string;
  execution_id: string;
  request_id: string;
  duplicate: boolean;
  event_ids: number[];
  commands_generated: number;
  detail: { events: { reason: string }[] };
  events: { event_id: number; event_type: string }[];
  started_at: string;
  steps: { name: string; status: string; attempts: number; started_at: string; error?: { kind: string } }[];
  commands: Claimed[];
  executions: { execution_id: string }[];
  items: { name: string; running: number }[];
  rows: unknown[];
}

/** An answer of the service. */
export interface Answer {
  status: number;
  headers: Headers;
  body: AnswerBody;
}

/** An execution as a caller sees it who watched it from its start to its end. */
export interface Watched {
  executionId: string;
  /** Ids of its events in the order in which they became readable. */
  seen: number[];
}

/** A caller of the service, who tries again as the service tells callers to. */
export interface Client {
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Registers a document. */
  register(content: string): Promise<void>;
  /** Starts an execution, again under the same idempotency key until the service says that it has. */
  start(path: string, workload: object): Promise<string>;
  /** Reads the log of an execution as it grows, until it has ended. */
  watch(executionId: string): Promise<Watched>;
  /** A report of a worker's events, once. */
  report(worker: string, events: readonly object[], more?: object, key?: string): Promise<Answer>;
}

/** `urls` are those of one service; the next one is asked when one cannot answer. */
export function createClient(...urls: string[]): Client {
  let turn = 0;
  const call: Client["call"] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${urls[turn % urls.length]}${path}`, {
      method,
      ...(body !== undefined && {
        body: JSON.stringify(body),
        headers: { "content-type": "application/json", ...headers },
      }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: parsed(text) as AnswerBody };
  };
  const answered = (what: string, method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    until(what, async () => {
      const answer = await call(method, path, body, headers).catch((error: unknown) => {
        turn += 1;
        throw error;
      });
      if (answer.status < 500) return answer;
      turn += 1;
      assert.equal(answer.status, 503, `${what}: ${JSON.stringify(answer.body)}`);
      assert.ok(answer.headers.has("retry-after"), `${what}: a 503 says when to come again`);
      return undefined;
    });
  return {
    call,
    async register(content) {
      const { status, body } = await answered("registering", "POST", "/api/catalog/register", { content });
      assert.equal(status, 200, JSON.stringify(body));
    },
    async start(path, workload) {
      const headers = { "idempotency-key": randomUUID() };
      const { status, body } = await answered("starting", "POST", "/api/execute", { path, workload }, headers);
      assert.equal(status, 200, JSON.stringify(body));
      return body.execution_id;
    },
    async watch(executionId) {
      const seen: number[] = [];
      await until(
        `execution ${executionId} ends`,
        async () => {
          const query = `?limit=500&after=${seen.at(-1) ?? 0}`;
          const { body } = await answered("reading events", "GET", `/api/executions/${executionId}/events${query}`);
          for (const { event_id } of body.events) seen.push(event_id);
          return body.events.some(({ event_type }) => ENDS.has(event_type));
        },
        { pollMs: 100 },
      );
      return { executionId, seen };
    },
    report: (worker, events, more = {}, key) =>
      call(
        "POST",
        "/api/events/batch",
        { worker, events, ...more },
        key === undefined ? {} : { "idempotency-key": key },
      ),
  };
}

/** Events that end an execution. */
export const ENDS: ReadonlySet<string> = new Set(["playbook.completed", "playbook.failed", "execution.cancelled"]);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
