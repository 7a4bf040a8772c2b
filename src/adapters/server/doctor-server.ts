import type { Secret } from "../../platform/crypto/secret.ts";
import { isRefusal } from "../../schema/routes/answer.ts";
import { type AnswerOf, contract, type RouteContract } from "../../schema/routes/contract.ts";
import { DOCTOR_ADMIN_ROUTES } from "../../schema/routes/doctor.ts";
import type { RouteInput } from "../../schema/routes/request.ts";
import { HEALTH_ROUTES } from "../../schema/routes/system.ts";
import { WORKER_ROUTES } from "../../schema/routes/workers.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { JsonValue } from "../../schema/words/wire.ts";
import { callServer, connectServer } from "./connection.ts";

/** A health check that takes longer says that the server hangs. */
const HEALTH_MS = 5_000;
/* That they answer is enough, whatever it is: a server of another version is there. */
const HEALTH = contract({ ...HEALTH_ROUTES.health, answer: JsonValue });
const POOLS = contract({ ...WORKER_ROUTES.pools, answer: JsonValue });

/** A diagnosis is a dozen checks, each bounded by a few seconds; ordinarily some tenths of one. */
const WORK_MS = 60_000;

/**
 * The server at this address as the doctor sees it, over its API. Calls reject with `FlowError`, with SERVER_UNREACHABLE where
 * nothing answers in time; what an older server does not have is undefined. Give no token where the address is not known to be
 * that of the token's server.
 */
export function openDoctorServer(url: string, token: Secret | undefined) {
  const connection = connectServer({ url, token, connections: 2 });
  const place = { kind: "server", name: url } as const;
  const ask = async <C extends RouteContract>(
    route: C,
    input: RouteInput<C> & { signal: AbortSignal },
    timeoutMs: number,
  ): Promise<AnswerOf<C>> => {
    const { signal } = input;
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      return await callServer(connection, route, { ...input, timeoutMs, signal: limited }, place);
    } catch (error) {
      if (!limited.aborted || signal.aborted) throw explained(error);
      const why = `${route.method.toUpperCase()} ${route.path} was not answered within ${timeoutMs / 1_000} s`;
      throw new FlowError("SERVER_UNREACHABLE", `The server at ${url} hangs: ${why}`, { cause: error });
    }
  };
  return {
    url,
    async health(signal: AbortSignal) {
      await ask(HEALTH, { signal }, HEALTH_MS);
    },
    async database(signal: AbortSignal) {
      await ask(POOLS, { query: { limit: 1 }, signal }, HEALTH_MS);
    },
    async diagnosis(staleSeconds: number | undefined, signal: AbortSignal) {
      const query = { stale_seconds: staleSeconds === undefined ? undefined : decimals(staleSeconds) };
      return await ask(DOCTOR_ADMIN_ROUTES.diagnosis, { query, signal }, WORK_MS).catch(absent);
    },
    async sweep(signal: AbortSignal) {
      return await ask(DOCTOR_ADMIN_ROUTES.sweep, { signal }, WORK_MS).catch(absent);
    },
    close: () => connection.close(),
  };
}

/** An older server does not have the route. */
function absent(error: unknown): undefined {
  if (!isRefusal(error, 404)) throw error;
}

/** As the query takes it: no exponent, three digits of a fraction. */
function decimals(seconds: number): string {
  return seconds.toFixed(3).replace(/\.?0+$/, "");
}

function explained(error: unknown): unknown {
  if (!isRefusal(error, 401) && !isRefusal(error, 403)) return error;
  const hint = "The doctor needs the operator's token: FLOW_SERVER_TOKEN";
  return new FlowError(error.code, `The server refused the doctor: ${error.message}. ${hint}`);
}
