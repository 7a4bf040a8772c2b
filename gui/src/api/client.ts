import createClient from "openapi-fetch";
import { Problem, problemOf, unreachable } from "./problem.ts";
import { missed, reached } from "./reach.ts";
import type { paths } from "./schema.d.ts";
import { addressOf, authorization } from "./session.ts";

/** Longer than the longest wait that a call may ask the server for. */
const CALL_MS = 45_000;

/** The server's API, typed by its own description. Its answers are taken out by {@link answerOf}. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });

async function send(request: Request): Promise<Response> {
  const url = new URL(request.url);
  const headers = new Headers(request.headers);
  for (const [name, value] of Object.entries(authorization())) headers.set(name, value);
  const body = request.method === "GET" ? null : await request.text();
  try {
    const response = await fetch(addressOf(url.pathname) + url.search, {
      method: request.method,
      headers,
      body: body === "" ? null : body,
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(CALL_MS)]),
      credentials: "same-origin",
    });
    // Something on the way answers for a server that does not.
    if (response.status === 502 || response.status === 504) missed();
    else reached();
    return response;
  } catch (error) {
    request.signal.throwIfAborted();
    missed();
    throw unreachable(error);
  }
}

/** The answer of a call. Throws {@link Problem} when it was refused or not answered. */
export async function answerOf<Data>(
  call: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<NonNullable<Data>> {
  const { data, error, response } = await call;
  if (response.ok && data !== undefined && data !== null) return data;
  throw await problemOf(new Response(JSON.stringify(error), response));
}

/** Whether the user has to log in again. */
export function isLockedOut(error: unknown): boolean {
  return error instanceof Problem && error.status === 401;
}
