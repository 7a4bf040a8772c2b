import type { ROUTE_GROUPS } from "../../../src/schema/routes/all.ts";
import type { AnswerOf, RouteContract } from "../../../src/schema/routes/contract.ts";
import { type RouteInput, requestOf } from "../../../src/schema/routes/request.ts";
import { Problem, problemOf, unreachable } from "./problem.ts";
import { missed, reached } from "./reach.ts";
import { addressOf, authorization } from "./session.ts";

/* The server's routes are called by their contracts. Only their types are used: as values, the contracts with their schemas
   would be 20 kB of the page. */

type Groups = typeof ROUTE_GROUPS;
type Contract = { [Group in keyof Groups]: Groups[Group][keyof Groups[Group]] }[keyof Groups];
type NameOf<C> = C extends RouteContract ? `${Uppercase<C["method"]>} ${C["path"]}` : never;
type Contracts = { [C in Contract as NameOf<C>]: C };

/** A call of the API: method and path as in its contract, `GET /api/executions/:execution_id`. */
export type CallName = keyof Contracts;

/** The answer of a call. */
export type Answer<Name extends CallName> = AnswerOf<Extract<Contracts[Name], RouteContract>>;

type Input<Name extends CallName> = RouteInput<Extract<Contracts[Name], RouteContract>> & {
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
};

/** Longer than the longest wait that a call may ask the server for. */
const CALL_MS = 45_000;

/**
 * Calls the server and returns its answer. Throws {@link Problem} for a call that was refused or not answered, and the
 * signal's reason when it was aborted.
 */
export async function api<Name extends CallName>(
  name: Name,
  ...[input]: object extends Input<Name> ? [Input<Name>?] : [Input<Name>]
): Promise<Answer<Name>> {
  const [method, path] = name.split(" ");
  // Nothing else of the contract is read.
  const contract = { method, path } as unknown as Extract<Contracts[Name], RouteContract>;
  const given = (input ?? {}) as Input<Name>;
  const request = requestOf(contract, given);
  const response = await send(request.path, {
    method: request.method,
    headers: { ...(request.body !== undefined && { "content-type": "application/json" }), ...given.headers },
    ...(request.body !== undefined && { body: request.body }),
    signal: given.signal ?? null,
  });
  if (!response.ok) throw await problemOf(response);
  const answer = (await response.json().catch(() => undefined)) as Answer<Name> | undefined;
  given.signal?.throwIfAborted();
  if (answer !== undefined) return answer;
  throw new Problem(response.status, "HTTP", "The response is not JSON. A proxy may have sent it.");
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const end = AbortSignal.timeout(CALL_MS);
  try {
    const response = await fetch(addressOf(path), {
      ...init,
      headers: { ...init.headers, ...authorization() },
      signal: init.signal == null ? end : AbortSignal.any([init.signal, end]),
      credentials: "same-origin",
    });
    // A proxy answers for a server that does not.
    if (response.status === 502 || response.status === 504) missed();
    else reached();
    return response;
  } catch (error) {
    init.signal?.throwIfAborted();
    missed();
    throw unreachable(error);
  }
}

/** Whether the user has to log in again. */
export function isLockedOut(error: unknown): boolean {
  return error instanceof Problem && error.status === 401;
}
