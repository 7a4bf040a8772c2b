import { type Agent, type Dispatcher, request as sendRequest } from "undici";
import { createEgressGuard, type EgressGuard } from "../../platform/http/egress.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { parseJsonKeepingDigits } from "../contract/parse-big-integers.ts";
import { readBody } from "../http/body.ts";
import { createGuardedAgent } from "../http/dispatcher.ts";
import { requestFailure, rootCause, statusError } from "../http/errors.ts";
import { describeRequest } from "../http/request.ts";

/** A request for a token or a secret. */
export interface SecretRequest {
  method: string;
  url: URL;
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** The address was set by the operator of this process, not by a playbook: it may be private. */
  operatorSet?: boolean;
}

/** What was answered, whatever its status. */
export interface SecretAnswer {
  /** The request for people: method and address without its query. */
  what: string;
  status: number;
  text: string;
}

/** Sends a request. Throws `FlowError` UNAVAILABLE without an answer, EGRESS_REFUSED for an address out of bounds. */
export type SendSecret = (request: SecretRequest, signal: AbortSignal) => Promise<SecretAnswer>;

/** What {@link createSecretRequests} takes. */
export interface SecretRequestOptions {
  egress: EgressGuard;
  /** Longest time of one request, milliseconds. */
  timeoutMs: number;
}

/** Largest answer: secrets have 64 KiB at most, tokens some KiB. */
const ANSWER_BYTES_MAX = 1_048_576;
const CONNECT_MS = 10_000;

/**
 * Sends requests that carry secrets: every address passes the egress guard, time and size are bounded, and no redirect is
 * followed, since a secret is meant for the address that it was given for.
 */
export function createSecretRequests(options: SecretRequestOptions): { send: SendSecret; close(): Promise<void> } {
  const agents = new Map<boolean, Agent>();
  const agentFor = (operatorSet: boolean): Agent => {
    const known = agents.get(operatorSet);
    if (known !== undefined) return known;
    const guard = operatorSet
      ? createEgressGuard({ allowPrivate: "all", proxyOf: options.egress.proxyOf })
      : options.egress;
    const agent = createGuardedAgent(guard, { verifySsl: true, connectTimeoutMs: CONNECT_MS });
    agents.set(operatorSet, agent);
    return agent;
  };
  return {
    async send(request, signal) {
      const dispatcher = agentFor(request.operatorSet === true);
      const timeout = AbortSignal.timeout(options.timeoutMs);
      try {
        return await exchange(request, dispatcher, AbortSignal.any([signal, timeout]));
      } catch (error) {
        signal.throwIfAborted();
        if (timeout.aborted) throw tooSlow(request, options.timeoutMs);
        throw noAnswer(request, error);
      }
    },
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.destroy()));
      agents.clear();
    },
  };
}

async function exchange(request: SecretRequest, dispatcher: Agent, signal: AbortSignal): Promise<SecretAnswer> {
  const what = describeRequest(request);
  const response = await sendRequest(request.url, {
    method: request.method as Dispatcher.HttpMethod,
    headers: { accept: "application/json", "user-agent": "flow", ...request.headers },
    body: request.body ?? null,
    dispatcher,
    signal,
  });
  const header = (name: string) => [response.headers[name] ?? []].flat()[0];
  const bytes = await readBody(response.body, header("content-encoding"), header("content-length"), ANSWER_BYTES_MAX);
  if (!Buffer.isBuffer(bytes)) throw new FlowError("UNAVAILABLE", `${what}: the answer ${bytes.message}.`);
  return { what, status: response.statusCode, text: bytes.toString("utf8") };
}

function tooSlow(request: SecretRequest, timeoutMs: number): FlowError {
  return new FlowError("UNAVAILABLE", `${describeRequest(request)} did not answer within ${timeoutMs / 1_000} s.`);
}

function noAnswer(request: SecretRequest, error: unknown): FlowError {
  const cause = rootCause(error);
  if (cause instanceof FlowError) return cause;
  const { error: failure } = requestFailure(describeRequest(request), error);
  const code = failure?.kind === "configuration" ? "INVALID_INPUT" : "UNAVAILABLE";
  return new FlowError(code, failure?.message ?? `${describeRequest(request)} failed.`, { cause: error });
}

/** Sends to an address that the operator set, or to one from a playbook or a credential. */
export function sender(send: SendSecret, operatorSet: boolean): SendSecret {
  return (request, signal) => send({ ...request, operatorSet }, signal);
}

/** The JSON of an answer; undefined for invalid JSON. */
export function jsonOf({ text }: SecretAnswer): Json | undefined {
  try {
    return parseJsonKeepingDigits(text);
  } catch {
    return undefined;
  }
}

/** Why an answer is of no use: its status, and what its body says in one line. */
export function refused(answer: SecretAnswer, data: Json = jsonOf(answer) ?? null): FlowError {
  const { status, what } = answer;
  if (status < 400) {
    const why = status < 300 ? "which is not what was expected" : "a redirect, which is not followed";
    return new FlowError("UNAUTHENTICATED", `${what} answered ${status}, ${why}.`);
  }
  const { message } = statusError(what, status, data);
  if (status === 429 || status >= 500) return new FlowError("UNAVAILABLE", message);
  return new FlowError(status === 404 ? "NOT_FOUND" : "UNAUTHENTICATED", message);
}
