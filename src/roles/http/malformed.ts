import type { ErrorBody } from "../../schema/words/wire.ts";

/** Like every other error (`routes/http/errors`), for bytes that never become a request there. 400: the HTTP is malformed. */
export function malformed(requestId: string): Response {
  const body = { error: "The request is malformed: its address or its Host header is invalid", code: "INVALID_INPUT" };
  const init = { status: 400, headers: { "x-request-id": requestId } };
  return Response.json({ ...body, request_id: requestId } satisfies ErrorBody, init);
}
