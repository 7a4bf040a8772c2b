import { untilAborted } from "../../platform/concurrency/until-aborted.ts";
import { parseReply } from "../../schema/routes/answer.ts";
import { headersOf, type ServerConnection } from "./connection.ts";

/** What answers requests of this process itself. */
export type Answering = (request: Request) => Response | Promise<Response>;

/**
 * The server of this very process, called without a port, and so without a token: `answer` says in whose name. `workerSecret`: of the
 * worker that calls. There is nothing to close, and no call fails to arrive.
 */
export function connectInProcess(answer: Answering, workerSecret: () => string): ServerConnection {
  return {
    async call(call) {
      const { method, path, body, signal } = call;
      signal.throwIfAborted();
      const request = new Request(`http://localhost${path}`, {
        method,
        headers: headersOf(call, workerSecret()),
        signal,
        ...(body !== undefined && { body }),
      });
      const response = await untilAborted(Promise.resolve(answer(request)), signal);
      const retryAfter = response.headers.get("retry-after");
      return {
        status: response.status,
        body: parseReply(await response.text()),
        ...(retryAfter !== null && { retryAfterMs: Number(retryAfter) * 1_000 }),
      };
    },
    close: () => Promise.resolve(),
  };
}
