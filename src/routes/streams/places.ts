import type { Context } from "hono";
import { createPlaces } from "../../platform/concurrency/places.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { RouteEnvironment } from "../http/request-context.ts";

/** How many event streams this server has open at a time. */
export interface StreamLimits {
  /** Of one user, or of one token of workers. */
  perUser: number;
  inAll: number;
}

/** The places of event streams. Each open stream has one: a connection, memory, and a look at the database each second. */
export interface StreamPlaces {
  /**
   * Takes a place for the caller. The returned function gives it back; further calls of it do nothing. Throws `FlowError`
   * RATE_LIMITED with `detail.retry_after_seconds` where the caller, or all callers together, have no place left.
   */
  take(c: Context<RouteEnvironment>): () => void;
}

/** When a caller may ask again: people close pages, and executions end, within seconds. */
const RETRY_AFTER_SECONDS = 10;

/**
 * Counts open streams. An operator is limited by what all have together alone: behind that token there may be many people and
 * programs, and without tokens everyone is the operator.
 */
export function createStreamPlaces({ perUser, inAll }: StreamLimits): StreamPlaces {
  const take = createPlaces({ perKey: perUser, inAll });
  return {
    take(c) {
      const place = take(callerKey(c));
      if (place === "key")
        throw noPlace(`You have ${plural(perUser)} open on this server`, "FLOW_EVENT_STREAMS_PER_USER");
      if (place === "all") throw noPlace(`This server has ${plural(inAll)} open`, "FLOW_EVENT_STREAMS");
      return place;
    },
  };
}

/** Who is counted: a user whatever their sessions, gateways and addresses; of workers all with one token. */
function callerKey(c: Context<RouteEnvironment>): string | undefined {
  const { user, role, pool } = c.var;
  if (user !== undefined) return `user:${user.userId}`;
  return role === "worker" ? `worker:${pool?.name ?? ""}` : undefined;
}

function plural(count: number): string {
  return count === 1 ? "1 event stream" : `${count.toLocaleString("en")} event streams`;
}

function noPlace(what: string, setting: string): FlowError {
  const help = `Close one, try again in ${RETRY_AFTER_SECONDS} s, or read /api/executions/{id}/events instead`;
  return new FlowError("RATE_LIMITED", `${what}, the most that ${setting} allows. ${help}`, {
    detail: { retry_after_seconds: RETRY_AFTER_SECONDS },
  });
}
