/** Why a call failed: the server's message, or why the server could not be reached. */
export class Problem extends Error {
  /** HTTP status; 0: the server could not be reached. */
  readonly status: number;
  /** The server's code, `NETWORK` when it could not be reached, `HTTP` where something else answered. */
  readonly code: string;
  readonly detail: unknown;
  /** `x-request-id`, by which the server's log has the call. */
  readonly requestId: string | undefined;

  constructor(status: number, code: string, message: string, more: { detail?: unknown; requestId?: string } = {}) {
    super(message);
    this.name = "Problem";
    this.status = status;
    this.code = code;
    this.detail = more.detail;
    this.requestId = more.requestId;
  }
}

/** The problem that an answer speaks of. Proxies on the way answer in their own words, which say little to a person. */
export async function problemOf(response: Response): Promise<Problem> {
  const requestId = response.headers.get("x-request-id") ?? undefined;
  const more = requestId === undefined ? {} : { requestId };
  const text = await response.text().catch(() => "");
  const body = parsed(text);
  if (isRecord(body) && typeof body["error"] === "string") {
    const code = typeof body["code"] === "string" ? body["code"] : "HTTP";
    return new Problem(response.status, code, body["error"], { detail: body["detail"], ...more });
  }
  return new Problem(response.status, "HTTP", `The answer was ${response.status} ${response.statusText}`.trim(), more);
}

/** The problem of a call that was not answered. */
export function unreachable(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new Problem(0, "NETWORK", `The server cannot be reached (${why}). The page retries.`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
