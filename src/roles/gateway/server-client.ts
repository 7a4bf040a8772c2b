import { callServer, type ServerConnection } from "../../adapters/server/connection.ts";
import { WAIT_MS_MAX } from "../../schema/api/executions.ts";
import type { KnownSession, LoginInput } from "../../schema/api/gateway.ts";
import { isRefusal } from "../../schema/routes/answer.ts";
import { AUTH_ROUTES } from "../../schema/routes/auth.ts";
import { EXECUTE_ROUTES, EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { LOGIN_SESSION_ROUTES } from "../../schema/routes/users.ts";
import type { AccessAction } from "../../schema/rules/access-rules.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import type { RefusedLogin } from "../../services/login/login.ts";

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
  /** Records a login that this gateway has refused. */
  loginRefused(refused: RefusedLogin): Promise<void>;
  /** Whether the session's user may. Throws `FlowError` UNAUTHENTICATED for a session that is not valid. */
  isAllowed(tokenSha256: string, access: { action: AccessAction; path: string }): Promise<boolean>;
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

/** The server, called over these connections. */
export function createGatewayServer(deps: GatewayServerDeps): GatewayServer {
  const { calls, waits, playbook, answerMs, stopping } = deps;
  const options = { timeoutMs: answerMs, signal: stopping };
  /* In the user's own name, for the audit log, and so that no user can end another's session. */
  const of = (tokenSha256: string, address?: string) => ({ ...options, session: { tokenSha256, address } });
  return {
    async startLogin(workload, idempotencyKey) {
      try {
        const body = { path: playbook, workload: { ...workload } };
        return (await callServer(calls, EXECUTE_ROUTES.execute, { body, idempotencyKey, ...options })).execution_id;
      } catch (error) {
        if (isRefusal(error, 404)) {
          const hint = "a server registers it when it starts; see its log";
          const why = `the playbook '${playbook}' is not in the catalog`;
          throw new FlowError("UNAVAILABLE", `No logins are possible: ${why}; ${hint}`);
        }
        if (isUsedKey(error, idempotencyKey))
          throw new FlowError("CONFLICT", "The key was used with another body before");
        return ownFault(error);
      }
    },
    async ended(executionId, signal) {
      const input = { params: { execution_id: executionId }, query: { wait_ms: WAIT_MS_MAX } };
      const limits = { timeoutMs: WAIT_MS_MAX + answerMs, signal };
      for (;;) {
        const { status } = await callServer(waits, EXECUTION_ROUTES.result, { ...input, ...limits }).catch(ownFault);
        if (ENDS.has(status)) return status;
      }
    },
    async session(tokenSha256, address) {
      const me = await callServer(calls, AUTH_ROUTES.me, of(tokenSha256, address)).catch((error: unknown) => {
        if (isRefusal(error, 401)) return undefined;
        return ownFault(error);
      });
      if (me === undefined) return undefined;
      if (me.kind !== "user")
        throw new FlowError("SERVER_UNREACHABLE", "What answers at FLOW_BASE_URL knows no sessions");
      const { user_id, email, display_name, roles, expires_at } = me;
      return { user: { user_id, email, display_name, roles }, expiresAt: Date.parse(expires_at) };
    },
    async revoke(tokenSha256) {
      const input = { body: { token_sha256: tokenSha256 }, ...of(tokenSha256) };
      await callServer(calls, LOGIN_SESSION_ROUTES.logout, input).catch(sessionFault);
    },
    async loginRefused({ idpDomain: idp_domain, address, code, reason }) {
      const body = { idp_domain, code, reason };
      await callServer(calls, LOGIN_SESSION_ROUTES.refused, { body, ...options, ...defined({ address }) });
    },
    async isAllowed(tokenSha256, { action, path }) {
      const input = { body: { action, path }, ...of(tokenSha256) };
      return (await callServer(calls, AUTH_ROUTES.can, input).catch(sessionFault)).allowed;
    },
  };
}

const ENDS = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

/** Throws the server's refusal; that of this gateway's own token is not the caller's fault. */
function ownFault(error: unknown): never {
  if (!isRefusal(error, 401) && !isRefusal(error, 403)) throw error;
  const why = "the server refuses the gateway's FLOW_SERVER_TOKEN";
  throw new FlowError("UNAVAILABLE", `The gateway cannot reach the server: ${why}`, { cause: error });
}

/** The same for a call in the name of a session: a 401 says that it is not valid. */
function sessionFault(error: unknown): never {
  if (!isRefusal(error, 401)) ownFault(error);
  const why = "it is over, was ended, or never was; log in again";
  throw new FlowError("UNAUTHENTICATED", `The session is not valid: ${why}`);
}

/** The refusal of a key that was used with another body; any other 422 is an error in the request. */
function isUsedKey(error: unknown, key: string): boolean {
  const detail = isRefusal(error, 422) ? error.detail : undefined;
  return isJsonObject(detail) && own(detail, "idempotency_key") === key;
}
