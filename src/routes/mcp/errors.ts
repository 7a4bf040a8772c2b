import type { Context } from "hono";
import { ERROR_STATUS, FlowError } from "../../schema/words/errors.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import type { McpParts } from "./deps.ts";

/** JSON-RPC's codes. */
const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;

/** An error as a client is told of it. What has no code of ours may hold a statement: its message stays in the log. */
export function told(
  error: unknown,
  c: Context<RouteEnvironment>,
  { unavailable, logger }: Pick<McpParts, "unavailable" | "logger">,
): Error & { code: number } {
  const known = error instanceof FlowError ? error : unavailable(error);
  const status = known === undefined ? 500 : ERROR_STATUS[known.code];
  if (known !== undefined && status < 500) return rpcError(INVALID_PARAMS, known.message);
  if (known !== undefined && status === 503) return rpcError(INTERNAL_ERROR, known.message);
  const { requestId } = c.var;
  logger.error({ request_id: requestId, err: error }, "a message of an MCP client failed");
  return rpcError(
    INTERNAL_ERROR,
    `The server failed at this message; its log has the cause under request ${requestId}`,
  );
}

function rpcError(code: number, message: string): Error & { code: number } {
  return Object.assign(new Error(message), { code });
}
