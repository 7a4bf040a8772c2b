import type { ErrorBody } from "../../schema/words/wire.ts";

/** As every other error (`routes/http/errors`), for what never becomes a request there. 400: HTTP itself is at fault. */
export function malformed(requestId: string): Response {
  const body = { error: "The request is malformed: its address or its Host is none", code: "INVALID_INPUT" };
  const init = { status: 400, headers: { "x-request-id": requestId } };
  return Response.json({ ...body, request_id: requestId } satisfies ErrorBody, init);
}
