import { CONNECTION_PROTOCOL, CONNECTION_ROUTES, MESSAGE_FIELDS, MESSAGE_PATHS } from "../../schema/routes/messages.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { MessageRequest, MessageSink } from "../http/message-request.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";

/** The route that a worker connection is opened by. Who may is decided as for every route; the listener does what it says. */
export function connectionRoutes() {
  return serve(CONNECTION_ROUTES, {
    open: (_, c) => {
      const upgrade = c.env?.upgrade;
      if (upgrade === undefined) {
        c.header("upgrade", CONNECTION_PROTOCOL);
        throw new FlowError(
          "UPGRADE_REQUIRED",
          `This address is for worker connections: send 'Connection: Upgrade' and 'Upgrade: ${CONNECTION_PROTOCOL}', or make the calls one by one`,
        );
      }
      if (upgrade.isLeaving) throw new FlowError("UNAVAILABLE", "This server is stopping; call another one");
      upgrade.isAccepted = true;
      return c.body(null, 204);
    },
  });
}

/** A call that came as a message. */
export interface MessageCall {
  kind: number;
  fields: Buffer;
  body: Buffer;
  /** Of the body as it was announced. */
  bytes: number;
  signal(): AbortSignal;
}

/** The answer to a call by message: as the route answers it over HTTP. */
export interface MessageAnswer {
  status: number;
  /** Header fields of the answer that matter to a worker, as JSON; empty for none. */
  fields: string;
  text: string;
}

/** Who has opened a worker connection. */
export interface MessageCaller {
  incoming: { socket: { remoteAddress?: string | undefined } };
  /** Headers of the request that opened it, by their names in small letters: they count for every call. */
  headers: Readonly<Record<string, string>>;
}

/** The API, as much as a worker connection needs. */
export interface MessageApi {
  fetch(request: Request, env: RouteEnvironment["Bindings"]): Response | Promise<Response>;
}

/**
 * Answers calls by message through the very routes that answer them over HTTP: with each call the token is looked up, the permission
 * decided, the body limited and validated, the call counted and logged. Undefined for a call that is malformed.
 */
export function answerMessages(
  app: MessageApi,
): (call: MessageCall, caller: MessageCaller) => Promise<MessageAnswer> | undefined {
  return (call, caller) => {
    const { kind, body, bytes, signal } = call;
    const fields = fieldsOf(call.fields);
    const path = MESSAGE_PATHS[kind];
    if (fields === undefined || path === undefined) return undefined;
    const header = (name: string) => (MESSAGE_FIELDS.has(name) ? fields.get(name) : caller.headers[name]);
    const request = new MessageRequest({ path, body, bytes, header, signal });
    const message = new MessageSink();
    // It has all that the middleware and the routes of calls by message ask a request for: a test makes each of them.
    const asked = request as unknown as Request;
    return answered(Promise.resolve(app.fetch(asked, { incoming: caller.incoming, message })), message);
  };
}

async function answered(response: Promise<Response>, message: MessageSink): Promise<MessageAnswer> {
  const answer = await response;
  const text = await message.textOf(answer);
  const retryAfter = answer.status < 400 ? null : answer.headers.get("retry-after");
  return { status: answer.status, fields: retryAfter === null ? "" : `{"retry-after":"${retryAfter}"}`, text };
}

/** Undefined where they are no object of texts that headers could hold. */
function fieldsOf(bytes: Buffer): ReadonlyMap<string, string> | undefined {
  if (bytes.length === 0) return NONE;
  const value = parsed(bytes);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const fields = new Map<string, string>();
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== "string" || !VISIBLE.test(text)) return undefined;
    fields.set(name, text.trim());
  }
  return fields;
}

const NONE: ReadonlyMap<string, string> = new Map();
const VISIBLE = /^[\x20-\x7e]*$/;

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}
