import type { Duplex } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { messageOf } from "../../schema/words/errors.ts";
import { type Wire, watchWire } from "./connection-watch.ts";
import { type Dialler, failedSocket } from "./dial.ts";

/** The database cannot be reached: since when (milliseconds since 1970), and why, for operators. */
export interface Away {
  since: number;
  reason: string;
  /** No statement is tried until a probe finds the database again: callers fail at once. */
  isClosed: boolean;
}

/** The connections of one pool, and whether the database is there. */
export interface Reach {
  /** A connection for the driver; while the database is unavailable it fails at once, so that no statement queues for it. */
  socket(): Promise<Duplex>;
  /** Undefined while it is there. */
  away(): Away | undefined;
  /** Nothing is connected or looked at any more. */
  close(): void;
}

/** The working sessions; `unknown` behind a pooler, which cannot say; `full` if the server takes no further session. */
export type Looked = ReadonlySet<number> | "unknown" | "full";

/** Dependencies of {@link createReach}. Times are milliseconds. */
export interface ReachDeps {
  dialler: Dialler;
  /**
   * Checks on a separate connection which of these sessions are working on a statement. Throws if no answer comes in time, or
   * the server starts or stops.
   */
  look(pids: readonly number[], limitMs: number): Promise<Looked>;
  /** A statement is cancelled after this long if it is unknown whether the server works on it. 0: never. */
  statementMs: number;
  /** The address names a kind of server (`target_session_attrs`). */
  picksServer: boolean;
  /** Called when connections fail or go unanswered, and (undefined) when the database is back. */
  onChange?(away: Away | undefined): void;
}

/** After this long without an answer the connection is probed: a caller learns within 5 s that the database is away. */
const SILENT_MS = 1_500;
const LOOK_MS = 2_000;
/** A working session is probed again after this time, one that seems idle after the shorter time. */
const LOOK_AGAIN_MS = 1_500;
const SUSPECT_AGAIN_MS = 500;
const TICK_MS = 250;
const CANCEL_ANSWER_MS = 2_000;
/** The driver leaves a server sooner than this when it is not the wanted one. */
const UNWANTED_MS = 1_000;

const LETS_NOBODY_IN = "It accepts connections but no session can log in";

/** Code of an error: the database was away already when the statement came, or went away during the login. */
export const AWAY = "DATABASE_AWAY";

/**
 * Watches a pool's connections. A silent connection with an outstanding answer may have died (a firewall, a power failure), or
 * its statement may just take long: a probe on a new connection decides. A session that does not work is cut off, so that its
 * callers fail; if the probe gets no answer, all silent connections are cut off, and nothing is tried until a probe succeeds.
 */
export function createReach({ dialler, look, picksServer, statementMs, onChange }: ReachDeps): Reach {
  const wires = new Map<Wire, { suspectedAt?: number | undefined; cancelledAt?: number }>();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let isLooking = false;
  let lookAfter = 0;
  let away: Away | undefined;
  /** Connections fail, and none has succeeded since. */
  let failing: Away | undefined;

  const cut = (wire: Wire, why: string) => {
    wires.delete(wire);
    wire.destroy(Object.assign(new Error(why), { code: AWAY }));
  };
  const silentFor = (wire: Wire) => {
    const since = wire.silentSince();
    return since === undefined ? 0 : performance.now() - since;
  };
  const fail = (reason: string) => {
    const isChange = away === undefined && failing === undefined;
    failing ??= { since: Date.now(), reason, isClosed: false };
    if (isChange) onChange?.(failing);
    watch();
  };
  const goAway = (reason: string) => {
    fail(reason);
    away ??= { since: failing?.since ?? Date.now(), reason, isClosed: true };
    for (const wire of wires.keys()) {
      // An idle connection has died with the rest, or is made again in a millisecond.
      if (wire.silentSince() === undefined || silentFor(wire) >= SILENT_MS) cut(wire, reason);
    }
    watch();
  };
  const comeBack = () => {
    if (failing === undefined) return;
    away = failing = undefined;
    onChange?.(undefined);
  };

  const lookOnce = async (silent: readonly Wire[]) => {
    const heardAt = new Map(silent.map((wire) => [wire, wire.silentSince()]));
    const pids = silent.map((wire) => wire.pid()).filter((pid) => pid !== 0);
    let looked: Looked;
    try {
      looked = await look(pids, LOOK_MS);
    } catch (error) {
      // This process may have been busy itself: what has arrived meanwhile is read before anything is decided.
      await turn();
      await turn();
      goAway(messageOf(error));
      return SUSPECT_AGAIN_MS;
    }
    // Existing sessions may go on.
    if (looked === "full") away = undefined;
    else comeBack();
    const working = typeof looked === "string" ? undefined : looked;
    let isSuspect = false;
    for (const wire of silent) {
      const about = wires.get(wire);
      const since = heardAt.get(wire);
      if (about === undefined || wire.silentSince() !== since) continue;
      if (wire.isReady() && (working === undefined || working.has(wire.pid()))) {
        about.suspectedAt = undefined;
      } else if (about.suspectedAt === since) {
        cut(wire, "The connection to the database was lost without a word");
      } else {
        // Its answer may be on the way.
        about.suspectedAt = since;
        isSuspect = true;
      }
    }
    if (working === undefined) for (const wire of silent) cancelOverdue(wire);
    return isSuspect ? SUSPECT_AGAIN_MS : LOOK_AGAIN_MS;
  };

  const cancelOverdue = (wire: Wire) => {
    const about = wires.get(wire);
    if (about === undefined || statementMs === 0 || silentFor(wire) < statementMs) return;
    about.cancelledAt ??= performance.now();
    if (performance.now() - about.cancelledAt >= CANCEL_ANSWER_MS) {
      cut(wire, `The database did not answer for ${statementMs / 1_000} s, nor to a cancellation`);
      return;
    }
    dialler.dial().then(
      (socket) => {
        // It is closed when it was passed on: a pooler drops the request of a client that leaves before.
        socket.setTimeout(CANCEL_ANSWER_MS, () => socket.destroy());
        socket.on("error", () => undefined).resume();
        socket.write(wire.cancelRequest());
      },
      () => undefined,
    );
  };

  const tick = () => {
    const silent = [...wires.keys()].filter((wire) => silentFor(wire) >= SILENT_MS);
    if (away !== undefined) for (const wire of silent) cut(wire, away.reason);
    else if (failing === undefined && ![...wires.keys()].some((wire) => wire.silentSince() !== undefined))
      return rest();
    if (isLooking || performance.now() < lookAfter || (failing === undefined && silent.length === 0)) return;
    isLooking = true;
    void lookOnce(away === undefined ? silent : []).then((pauseMs) => {
      lookAfter = performance.now() + pauseMs;
      isLooking = false;
    });
  };
  const watch = () => {
    if (timer === undefined && !isClosed) timer = setInterval(tick, TICK_MS).unref();
  };
  const rest = () => {
    clearInterval(timer);
    timer = undefined;
  };

  const refused = () => Object.assign(new Error(away?.reason ?? "The pool is closed"), { code: AWAY });
  return {
    async socket() {
      if (away !== undefined || isClosed) return failedSocket(refused());
      try {
        const socket = await dialler.dial();
        if (isClosed) {
          socket.destroy();
          return failedSocket(refused());
        }
        const madeAt = Date.now();
        const wire = watchWire(socket, () => performance.now(), {
          requestSent: watch,
          answered: (isFirst) => {
            if (isFirst && away === undefined) comeBack();
          },
        });
        wires.set(wire, {});
        socket.once("close", () => {
          wires.delete(wire);
          if (!wire.isReady() && !isClosed) fail(LETS_NOBODY_IN);
          // The driver leaves a server that is not the one which `target_session_attrs` wants.
          if (!wire.isReady() || (picksServer && Date.now() - madeAt < UNWANTED_MS)) dialler.next();
        });
        return socket;
      } catch (error) {
        const reason = messageOf(error);
        if (error instanceof Error && "code" in error && error.code === "CONNECT_TIMEOUT") goAway(reason);
        else fail(reason);
        return failedSocket(error instanceof Error ? error : new Error(reason));
      }
    },
    away: () => away ?? failing,
    close() {
      isClosed = true;
      rest();
      for (const wire of wires.keys()) wire.destroy(refused());
      wires.clear();
    },
  };
}
