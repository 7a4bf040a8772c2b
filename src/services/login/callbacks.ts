import { randomBytes } from "node:crypto";
import type { CallbackBody } from "../../schema/api/gateway.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** A callback that is waited for. */
export interface Expected {
  /** For the playbook: 256 random bits. */
  requestId: string;
  /** Which execution may answer. Call it once it is known; what answers before waits for it. */
  bind(executionId: string): void;
  /** The callback; rejects when {@link close} is called first. */
  answer: Promise<CallbackBody>;
  /** Nothing is waited for any more. May be called more than once. */
  close(): void;
}

/** Callbacks of playbooks to this process: each request is answered once, by the execution that it was given to. */
export interface Callbacks {
  /** Throws `FlowError` UNAVAILABLE when too many are waited for already. */
  expect(check?: (body: CallbackBody) => void): Expected;
  /**
   * Passes a callback to its waiting request. Throws `FlowError` NOT_FOUND for a request that is unknown, answered or expired;
   * FORBIDDEN for a callback of another execution, which leaves the request open; and what its `check` throws, which is also
   * the answer to the waiting request.
   */
  take(body: CallbackBody): Promise<void>;
}

/** Callbacks that are waited for at a time: several times the logins that are to be in flight at once. */
const EXPECTED_MAX = 5_000;
const REQUEST_ID_BYTES = 32;

interface Waiting {
  execution: Promise<string>;
  check(body: CallbackBody): void;
  resolve(body: CallbackBody): void;
  reject(error: unknown): void;
}

/** None are waited for yet. */
export function createCallbacks(): Callbacks {
  const waiting = new Map<string, Waiting>();
  return {
    expect(check = () => undefined) {
      if (waiting.size >= EXPECTED_MAX)
        throw new FlowError("UNAVAILABLE", "Too many logins are under way here; try again in a few seconds");
      const requestId = randomBytes(REQUEST_ID_BYTES).toString("base64url");
      const { promise: execution, resolve: bind, reject: unbind } = deferred<string>();
      const { promise: answer, resolve, reject } = deferred<CallbackBody>();
      waiting.set(requestId, { execution, check, resolve, reject });
      const close = () => {
        waiting.delete(requestId);
        unbind(unknownRequest());
        reject(new FlowError("CANCELLED", "The callback is not waited for any more"));
      };
      return { requestId, bind, answer, close };
    },
    async take(body) {
      const { request_id: requestId } = body;
      const request = waiting.get(requestId);
      if (request === undefined) throw unknownRequest();
      // A playbook may be faster than the answer with its execution's id.
      const execution = await request.execution;
      if (execution !== body.execution_id)
        throw new FlowError("FORBIDDEN", "The callback is not one of the execution that the request was given to");
      // Another callback of the same execution may have arrived while this one waited.
      if (!waiting.delete(requestId)) throw unknownRequest();
      try {
        request.check(body);
      } catch (error) {
        request.reject(error);
        throw error;
      }
      request.resolve(body);
    },
  };
}

function unknownRequest(): FlowError {
  const why = "it was answered already, its time is over, or another gateway has made it";
  return new FlowError("NOT_FOUND", `No request waits for this request_id here: ${why}`);
}

/* Node 20 has no Promise.withResolvers. A rejection before its handler is attached must not be reported as unhandled. */
function deferred<T>() {
  let resolve: (value: T) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
