import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { defined } from "../../schema/words/defined.ts";
import { ERROR_STATUS, type ErrorCode, FlowError } from "../../schema/words/errors.ts";
import { isJsonObject } from "../../schema/words/json.ts";
import type { ErrorBody } from "../../schema/words/wire.ts";
import type { RouteEnvironment } from "./request-context.ts";

/** Seconds after which a caller may try again when the database is away: it is back within that or gone for longer. */
const RETRY_AFTER_SECONDS = 1;

/**
 * Turns an error of a route into its answer. The status is that of the error's code ({@link ERROR_STATUS}); an error without a
 * code is 503 if the database is unavailable, else 500, and its message stays in the log: it may contain SQL.
 */
export function errorAnswers(deps: {
  logger: Logger;
  unavailable(error: unknown): FlowError | undefined;
}): (error: Error, c: Context<RouteEnvironment>) => Response {
  return (error, c) => {
    const shown = shownError(error, deps.unavailable);
    const status = ERROR_STATUS[shown.code];
    const fields = { request_id: c.get("requestId"), code: shown.code };
    if (status === 500) deps.logger.error({ ...fields, err: error }, "a request failed");
    if (status === 503) deps.logger.warn({ ...fields, err: error }, "a request could not be answered");
    const retryAfter = retryAfterSeconds(shown);
    if (retryAfter !== undefined) c.header("retry-after", String(retryAfter));
    if (status === 401) c.header("www-authenticate", "Bearer");
    const { code, detail } = shown;
    const body: ErrorBody = {
      error: shown.message,
      code,
      ...defined({ detail }),
      request_id: c.get("requestId"),
    };
    return c.json(body, status as ContentfulStatusCode);
  };
}

function retryAfterSeconds({ code, detail }: FlowError): number | undefined {
  if (code !== "active_claim" && code !== "RATE_LIMITED")
    return ERROR_STATUS[code] === 503 ? RETRY_AFTER_SECONDS : undefined;
  const seconds = isJsonObject(detail) ? detail["retry_after_seconds"] : undefined;
  return typeof seconds === "number" ? seconds : RETRY_AFTER_SECONDS;
}

/** The answer to an address that is no route. */
export function noSuchRoute(c: Context): never {
  throw new FlowError("NOT_FOUND", `There is no ${c.req.method} ${c.req.path}; /api/openapi.json lists all routes`);
}

function shownError(error: unknown, unavailable: (error: unknown) => FlowError | undefined): FlowError {
  if (error instanceof FlowError && (ERROR_STATUS[error.code] !== 500 || SHOWN_CODES.has(error.code))) return error;
  return unavailable(error) ?? new FlowError("INTERNAL", HIDDEN);
}

/**
 * Faults whose message is shown, as it holds no value: a key that is missing is named, as nothing but its setting helps; of a
 * login the specification has the words.
 */
const SHOWN_CODES: ReadonlySet<string> = new Set(["ENCRYPTION", "INVALID_LOGIN"] satisfies ErrorCode[]);

const HIDDEN = "The server failed at this request; its log has the cause under the request's id";
