import type { TestContext } from "node:test";
import { ERROR_STATUS, type ErrorCode, FlowError } from "../../src/schema/words/errors.ts";
import { type RecordedRequest, startHttpServer, type TestHttpServer } from "../support/servers/http-server.ts";

/** What must appear nowhere but in the file of contexts. */
export const SESSION = "c4nary-session-token";

/** A gateway as the command line sees it. */
export interface PlayingGateway extends TestHttpServer {
  /** Sessions that are open. */
  sessions: Set<string>;
  /** What `/flow/…` answers, by method and path: a body, or an error to throw. */
  answers: Map<string, unknown>;
  /** Every connection is cut off. */
  away: boolean;
  /** What a login answers otherwise than it should. */
  odd: Readonly<Record<string, unknown>>;
}

/** Starts one; it ends with the test. */
export async function startPlayingGateway(t: TestContext): Promise<PlayingGateway> {
  const sessions = new Set<string>();
  const answers = new Map<string, unknown>();
  const server = await startHttpServer((request, response) => {
    if (gateway.away) {
      response.destroy();
      return;
    }
    const { status, body } = outcomeOf(gateway, request);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  t.after(() => server.close());
  const gateway = Object.assign(server, { sessions, answers, away: false, odd: {} });
  return gateway;
}

function outcomeOf(gateway: PlayingGateway, request: RecordedRequest): { status: number; body: unknown } {
  try {
    return { status: 200, body: answerOf(gateway, request) };
  } catch (error) {
    const { code, message } = error instanceof FlowError ? error : new FlowError("INTERNAL", String(error));
    const status = ERROR_STATUS[code satisfies ErrorCode];
    return { status, body: { error: message, code, request_id: "7" } };
  }
}

function answerOf(
  { sessions, answers, odd }: PlayingGateway,
  { method, url, headers, body }: RecordedRequest,
): unknown {
  const session = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1] ?? "";
  if (url === "/api/auth/login") {
    const { idp_token, idp_domain } = JSON.parse(body) as Record<string, string>;
    if (idp_domain !== "idp.example") throw new FlowError("FORBIDDEN", `Logins here do not accept '${idp_domain}'`);
    if (idp_token?.endsWith(".bad") === true) throw new FlowError("UNAUTHENTICATED", "The ID token was rejected");
    sessions.add(SESSION);
    return {
      status: "authenticated",
      session_token: SESSION,
      user: { user_id: 7, email: "ada@example.com", display_name: "Ada", roles: ["analyst", "viewer"] },
      expires_at: "2999-01-31T12:00:00.000",
      message: "Authentication successful",
      ...odd,
    };
  }
  if (!sessions.has(session)) throw new FlowError("UNAUTHENTICATED", "The session is over, or there is none");
  if (url === "/api/auth/logout") {
    sessions.delete(session);
    return { status: "logged_out" };
  }
  const found = answers.get(`${method} ${url}`);
  if (found instanceof FlowError) throw found;
  if (found === undefined) throw new FlowError("NOT_FOUND", `There is no ${method} ${url}`);
  return found;
}
