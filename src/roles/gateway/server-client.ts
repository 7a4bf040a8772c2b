import { refusal, type ServerConnection, type ServerReply } from "../../adapters/server/connection.ts";
import { type KnownSession, type LoginInput, sessionOfAnswer } from "../../schema/api/gateway.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";

/** What a gateway asks its server, in its own name and in those of users. */
export interface GatewayServer {
  /** Starts the login's playbook; gives the execution. A key that was used with another body: `FlowError` CONFLICT. */
  startLogin(input: LoginInput, idempotencyKey: string): Promise<string>;
  /** Resolves with the status of the execution when it has ended. */
  ended(executionId: string, signal: AbortSignal): Promise<string>;
  /** The user of a session; undefined if it is not valid. */
  session(tokenSha256: string, address: string | undefined): Promise<KnownSession | undefined>;
  /** Ends a session. Throws `FlowError` UNAUTHENTICATED if it is not valid. */
  revoke(tokenSha256: string): Promise<void>;
  /** Whether the session's user may. Throws `FlowError` UNAUTHENTICATED for a session that is not valid. */
  isAllowed(tokenSha256: string, access: { action: string; path: string }): Promise<boolean>;
}

/** What a {@link GatewayServer} is made of. */
export interface GatewayServerDeps {
  calls: ServerConnection;
  /** For long waits, so that they delay no other call. */
  waits: ServerConnection;
  /** Catalog path of the login's playbook. */
  playbook: string;
  /** Longest silence of the server. */
  answerMs: number;
  /** Aborted when the gateway stops. */
  stopping: AbortSignal;
}

/** Longest wait for an execution's end in one request. */
const WAIT_MS = 30_000;

/** The server, asked over these connections. */
export function createGatewayServer(deps: GatewayServerDeps): GatewayServer {
  const { calls, waits, playbook, answerMs, stopping } = deps;
  const options = { timeoutMs: answerMs, signal: stopping };
  return {
    async startLogin(workload, idempotencyKey) {
      const body = JSON.stringify({ path: playbook, workload });
      const reply = await calls.call({ ...options, method: "POST", path: "/api/execute", body, idempotencyKey });
      if (reply.status === 404) {
        const hint = "a server registers it when it starts; see its log";
        throw new FlowError(
          "UNAVAILABLE",
          `No logins are possible: the playbook '${playbook}' is not in the catalog; ${hint}`,
        );
      }
      if (isUsedKey(reply, idempotencyKey))
        throw new FlowError("CONFLICT", "The key was used with another body before");
      return text(accepted(reply), "execution_id");
    },
    async ended(executionId, signal) {
      for (;;) {
        const path = `/api/executions/${executionId}/result?wait_ms=${WAIT_MS}`;
        const timeoutMs = WAIT_MS + answerMs;
        const status = text(accepted(await waits.call({ method: "GET", path, timeoutMs, signal })), "status");
        if (ENDS.has(status)) return status;
      }
    },
    async session(tokenSha256, address) {
      const session = { tokenSha256, address };
      const reply = await calls.call({ ...options, method: "GET", path: "/api/auth/me", session });
      if (reply.status === 401) return undefined;
      const known = sessionOfAnswer(accepted(reply));
      if (known === undefined) throw noServer();
      return known;
    },
    async revoke(tokenSha256) {
      const body = JSON.stringify({ token_sha256: tokenSha256 });
      // In the user's own name, for the audit log, and so that no user can end another's session.
      const session = { tokenSha256, address: undefined };
      const reply = await calls.call({ ...options, method: "POST", path: "/api/auth/sessions/revoke", body, session });
      if (reply.status === 401) throw invalidSession();
      accepted(reply);
    },
    async isAllowed(tokenSha256, { action, path }) {
      const body = JSON.stringify({ action, path });
      const session = { tokenSha256, address: undefined };
      const reply = await calls.call({ ...options, method: "POST", path: "/api/auth/can", body, session });
      if (reply.status === 401) throw invalidSession();
      return own(objectOf(accepted(reply)), "allowed") === true;
    },
  };
}

const ENDS = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

/** The server's answer. Throws its refusal; a refusal of this gateway's own token is not the caller's fault. */
function accepted(reply: ServerReply): unknown {
  if (reply.status < 300) return reply.body;
  if (reply.status !== 401 && reply.status !== 403) throw refusal(reply);
  const why = "the server refuses the gateway's FLOW_SERVER_TOKEN";
  throw new FlowError("UNAVAILABLE", `The gateway cannot ask the server: ${why}`, { cause: refusal(reply) });
}

/** The refusal of a key that was used with another body; any other 422 is an error in the request. */
function isUsedKey({ status, body }: ServerReply, key: string): boolean {
  const detail = isJsonObject(body) ? own(body, "detail") : undefined;
  return status === 422 && isJsonObject(detail) && own(detail, "idempotency_key") === key;
}

function objectOf(body: unknown): object {
  if (isJsonObject(body)) return body;
  throw noServer();
}

function text(body: unknown, key: string): string {
  const value = own(objectOf(body), key);
  if (typeof value === "string") return value;
  throw noServer();
}

function invalidSession(): FlowError {
  return new FlowError(
    "UNAUTHENTICATED",
    "The session is not valid: it is over, was ended, or never was; log in again",
  );
}

function noServer(): FlowError {
  return new FlowError("SERVER_UNREACHABLE", "What answers at FLOW_BASE_URL is no server of flow");
}
