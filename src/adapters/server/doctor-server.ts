import * as v from "valibot";
import type { Secret } from "../../platform/crypto/secret.ts";
import { Diagnosis, SweepAnswer } from "../../schema/api/doctor.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { connectServer, refusal, type ServerReply } from "./connection.ts";

/** A health check that takes longer says that the server hangs. */
const HEALTH_MS = 5_000;
/** A diagnosis is a dozen checks, each bounded by a few seconds; ordinarily some tenths of one. */
const WORK_MS = 60_000;

/**
 * The server at this address as the doctor sees it, over its API. Calls reject with `FlowError`, with SERVER_UNREACHABLE where
 * nothing answers in time; what an older server does not have is undefined. Give no token where the address is not known to be
 * that of the token's server.
 */
export function openDoctorServer(url: string, token: Secret | undefined) {
  const connection = connectServer({ url, token, connections: 2 });
  const ask = (method: "GET" | "POST", path: string, timeoutMs: number, signal: AbortSignal) => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const call = { method, path, timeoutMs, signal: limited, ...(method === "POST" && { body: "{}" }) };
    return connection.call(call).catch((error: unknown) => {
      if (!limited.aborted || signal.aborted) throw error;
      const why = `${method} ${path} was not answered within ${timeoutMs / 1_000} s`;
      throw new FlowError("SERVER_UNREACHABLE", `The server at ${url} hangs: ${why}`, { cause: error });
    });
  };
  return {
    url,
    async health(signal: AbortSignal) {
      expectOk(await ask("GET", "/api/health", HEALTH_MS, signal));
    },
    async database(signal: AbortSignal) {
      expectOk(await ask("GET", "/api/worker/pools?limit=1", HEALTH_MS, signal));
    },
    async diagnosis(staleSeconds: number | undefined, signal: AbortSignal) {
      const query = staleSeconds === undefined ? "" : `?stale_seconds=${decimals(staleSeconds)}`;
      const reply = await ask("GET", `/api/admin/diagnosis${query}`, WORK_MS, signal);
      return reply.status === 404 ? undefined : parsed(Diagnosis, reply, url);
    },
    async sweep(signal: AbortSignal) {
      const reply = await ask("POST", "/api/admin/command_reaper/sweep", WORK_MS, signal);
      return reply.status === 404 ? undefined : parsed(SweepAnswer, reply, url);
    },
    close: () => connection.close(),
  };
}

/** As the query takes it: no exponent, three digits of a fraction. */
function decimals(seconds: number): string {
  return seconds.toFixed(3).replace(/\.?0+$/, "");
}

function expectOk(reply: ServerReply): void {
  if (reply.status !== 200) throw explained(reply);
}

function parsed<S extends v.GenericSchema>(schema: S, reply: ServerReply, url: string): v.InferOutput<S> {
  expectOk(reply);
  const result = v.safeParse(schema, reply.body);
  if (result.success) return result.output;
  throw new FlowError("SERVER_UNREACHABLE", `What answers at ${url} is no flow server of this version`);
}

function explained(reply: ServerReply): FlowError {
  const refused = refusal(reply);
  if (reply.status !== 401 && reply.status !== 403) return refused;
  const hint = "The doctor needs the operator's token: FLOW_SERVER_TOKEN";
  return new FlowError(refused.code, `The server refused the doctor: ${refused.message}. ${hint}`);
}
