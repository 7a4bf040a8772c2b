import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { open } from "../../repositories/service-database.ts";
import { createServedDatabase } from "../database/postgres.ts";
import { ownDatabase } from "../engine/key-ring.ts";
import { DOMAIN, type IdentityProvider, type Person, startIdentityProvider } from "../servers/identity-provider.ts";
import { folderWith } from "./cli-process.ts";
import { type Serving, startServe } from "./serve.ts";

/** The whole service with logins: a server with tokens, its worker, a gateway, a real identity provider and PostgreSQL. */
export interface LoginService {
  provider: IdentityProvider;
  database: Database;
  server: Serving;
  /** What server and gateway have logged so far. */
  log(): string;
  /** What the processes were started with. */
  environment: NodeJS.ProcessEnv;
  /** A call of the operator; any status but 2xx fails the test. */
  operator<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Runs a playbook to its end. */
  run(path: string, workload?: object): Promise<Ended>;
  /** `POST /api/auth/login` with a fresh ID token of this person. */
  login(person: Person): Promise<LoginReply>;
  /** The same with an ID token at hand. */
  loginWith(idToken: string): Promise<LoginReply>;
  /** A call through the gateway with a session. */
  as(sessionToken: string, method: string, path: string, body?: unknown): Promise<Reply>;
}

/** An execution that has ended. */
export interface Ended {
  execution_id: string;
  status: string;
  result: Record<string, unknown> | null;
  error: { code: string; message: string } | null;
}

/** An answer. */
export interface Reply<T = Record<string, unknown>> {
  status: number;
  headers: Headers;
  body: T;
}

/** What a login answers: the session, or the error. */
export type LoginReply = Reply<{
  status?: string;
  session_token: string;
  user: { user_id: number; email: string; display_name: string; roles: string[] };
  expires_at: string;
  message?: string;
  error?: string;
  code?: string;
}>;

const SERVER_TOKEN = "operator-of-the-tests";
const WORKER_TOKEN = "worker-of-the-tests";
const WAIT_MS = 30_000;

/** Starts it; everything ends with the test. */
export async function startLoginService(
  t: Pick<TestContext, "after">,
  settings: NodeJS.ProcessEnv = {},
): Promise<LoginService> {
  const provider = await startIdentityProvider();
  t.after(() => provider.close());
  const { url } = await createServedDatabase();
  const database = open(url);
  const environment = {
    ...ownDatabase(url),
    FLOW_SERVER_TOKEN: SERVER_TOKEN,
    FLOW_WORKER_TOKEN: WORKER_TOKEN,
    FLOW_IDP_CONFIG: provider.config,
    FLOW_GATEWAY_PORT: "0",
    FLOW_GATEWAY_INTERNAL_PORT: "0",
    // Callbacks go to the gateway of this machine.
    FLOW_HTTP_ALLOW_PRIVATE: "127.0.0.0/8",
    // However slow the machine is, and however many log in here.
    FLOW_GATEWAY_LOGIN_SECONDS: "120",
    FLOW_GATEWAY_LOGINS_PER_MINUTE: "10000",
    ...settings,
  };
  const server = await startServe(t, await folderWith(t, {}), environment, ["--role", "all"]);
  let log = "";
  server.process.stderr.on("data", (text: string) => {
    log += text;
  });
  const send = async <T>(url: string, token: string | undefined, method: string, body?: unknown): Promise<Reply<T>> => {
    const response = await fetch(url, {
      method,
      headers: {
        "content-type": "application/json",
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const { status, headers } = response;
    return { status, headers, body: (await response.json()) as T };
  };
  const operator = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const reply = await send<T>(`${server.url}${path}`, SERVER_TOKEN, method, body);
    assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
    return reply.body;
  };
  const loginWith = (idToken: string) =>
    send<LoginReply["body"]>(`${server.gatewayUrl}/api/auth/login`, undefined, "POST", {
      idp_token: idToken,
      idp_domain: DOMAIN,
    });
  return {
    provider,
    database,
    server,
    log: () => log,
    environment,
    operator,
    loginWith,
    async run(path, workload = {}) {
      const { execution_id: id } = await operator<{ execution_id: string }>("POST", "/api/execute", { path, workload });
      for (;;) {
        const ended = await operator<Ended>("GET", `/api/executions/${id}/result?wait_ms=${WAIT_MS}`);
        if (["COMPLETED", "FAILED", "CANCELLED"].includes(ended.status)) return ended;
      }
    },
    login: async (person) => loginWith(await provider.idToken(person)),
    as: (sessionToken, method, path, body) => send(`${server.gatewayUrl}${path}`, sessionToken, method, body),
  };
}
