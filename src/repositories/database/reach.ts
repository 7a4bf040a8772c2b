import type { Socket } from "node:net";
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
export function createReach(deps: ReachDeps): Reach {
  const { dialler, picksServer } = deps;
  const wires = createWires();
  const outage = createOutage(deps.onChange);
  let isClosed = false;
  const fail = (reason: string) => {
    outage.fail(reason);
    ticker.start();
  };
  const goAway = (reason: string) => {
    outage.close(reason);
    for (const wire of wires.all()) {
      // An idle connection has died with the rest, or is made again in a millisecond.
      if (wire.silentSince() === undefined || silentFor(wire) >= SILENT_MS) wires.cut(wire, reason);
    }
    ticker.start();
  };
  const ticker = createTicker(createProbing(deps, wires, outage, goAway), () => isClosed);

  const refused = () => Object.assign(new Error(outage.closed()?.reason ?? "The pool is closed"), { code: AWAY });
  const watch = (socket: Socket) => {
    const madeAt = Date.now();
    const wire = watchWire(socket, () => performance.now(), {
      requestSent: ticker.start,
      answered: (isFirst) => {
        if (isFirst && outage.closed() === undefined) outage.end();
      },
    });
    wires.add(wire);
    socket.once("close", () => {
      wires.remove(wire);
      if (!wire.isReady() && !isClosed) fail(LETS_NOBODY_IN);
      // The driver leaves a server that is not the one which `target_session_attrs` wants.
      if (!wire.isReady() || (picksServer && Date.now() - madeAt < UNWANTED_MS)) dialler.next();
    });
  };
  return {
    async socket() {
      if (outage.closed() !== undefined || isClosed) return failedSocket(refused());
      try {
        const socket = await dialler.dial();
        if (isClosed) {
          socket.destroy();
          return failedSocket(refused());
        }
        watch(socket);
        return socket;
      } catch (error) {
        const reason = messageOf(error);
        if (error instanceof Error && "code" in error && error.code === "CONNECT_TIMEOUT") goAway(reason);
        else fail(reason);
        return failedSocket(error instanceof Error ? error : new Error(reason));
      }
    },
    away: () => outage.closed() ?? outage.begun(),
    close() {
      isClosed = true;
      ticker.stop();
      for (const wire of wires.all()) wire.destroy(refused());
      wires.clear();
    },
  };
}

/** What is remembered of a connection. */
interface About {
  /** Since when it was silent when a probe found its session idle. */
  suspectedAt?: number | undefined;
  cancelledAt?: number;
}

type Wires = ReturnType<typeof createWires>;

/** The open connections of a pool. */
function createWires() {
  const wires = new Map<Wire, About>();
  return {
    all: () => wires.keys(),
    about: (wire: Wire) => wires.get(wire),
    add: (wire: Wire) => void wires.set(wire, {}),
    remove: (wire: Wire) => void wires.delete(wire),
    clear: () => wires.clear(),
    /** Ends a connection: its callers fail with this reason. */
    cut(wire: Wire, why: string) {
      wires.delete(wire);
      wire.destroy(Object.assign(new Error(why), { code: AWAY }));
    },
  };
}

type Outage = ReturnType<typeof createOutage>;

/** Whether the database is away, and how much so. */
function createOutage(onChange: ReachDeps["onChange"]) {
  let away: Away | undefined;
  /** Connections fail, and none has succeeded since. */
  let failing: Away | undefined;
  const fail = (reason: string) => {
    const isChange = away === undefined && failing === undefined;
    failing ??= { since: Date.now(), reason, isClosed: false };
    if (isChange) onChange?.(failing);
  };
  return {
    begun: () => failing,
    /** Undefined while statements may be tried. */
    closed: () => away,
    fail,
    /** No statement is tried from here on. */
    close(reason: string) {
      fail(reason);
      away ??= { since: failing?.since ?? Date.now(), reason, isClosed: true };
    },
    /** Statements may be tried again; connections may go on failing. */
    open() {
      away = undefined;
    },
    end() {
      if (failing === undefined) return;
      away = failing = undefined;
      onChange?.(undefined);
    },
  };
}

/** Calls `tick` every 250 ms from `start` on, until it returns `rest`. */
function createTicker(tick: () => "rest" | undefined, isClosed: () => boolean) {
  let timer: NodeJS.Timeout | undefined;
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
  };
  const tickOnce = () => {
    if (tick() === "rest") stop();
  };
  return {
    start() {
      if (timer === undefined && !isClosed()) timer = setInterval(tickOnce, TICK_MS).unref();
    },
    stop,
  };
}

/** Probes silent connections, one probe at a time; returns what is to be called at every tick. */
function createProbing(deps: ReachDeps, wires: Wires, outage: Outage, goAway: (reason: string) => void) {
  let isLooking = false;
  let lookAfter = 0;
  const lookOnce = async (silent: readonly Wire[]) => {
    const heardAt = new Map(silent.map((wire) => [wire, wire.silentSince()]));
    const pids = silent.map((wire) => wire.pid()).filter((pid) => pid !== 0);
    let looked: Looked;
    try {
      looked = await deps.look(pids, LOOK_MS);
    } catch (error) {
      // This process may have been busy itself: what has arrived meanwhile is read before anything is decided.
      await turn();
      await turn();
      goAway(messageOf(error));
      return SUSPECT_AGAIN_MS;
    }
    // Existing sessions may go on.
    if (looked === "full") outage.open();
    else outage.end();
    const working = typeof looked === "string" ? undefined : looked;
    const isSuspect = silent.filter((wire) => judge(wires, wire, heardAt.get(wire), working)).length > 0;
    if (working === undefined) for (const wire of silent) cancelOverdue(deps, wires, wire);
    return isSuspect ? SUSPECT_AGAIN_MS : LOOK_AGAIN_MS;
  };
  return () => {
    const all = [...wires.all()];
    const silent = all.filter((wire) => silentFor(wire) >= SILENT_MS);
    const away = outage.closed();
    if (away !== undefined) for (const wire of silent) wires.cut(wire, away.reason);
    else if (outage.begun() === undefined && !all.some((wire) => wire.silentSince() !== undefined)) return "rest";
    if (isLooking || performance.now() < lookAfter) return undefined;
    if (outage.begun() === undefined && silent.length === 0) return undefined;
    isLooking = true;
    void lookOnce(away === undefined ? silent : []).then((pauseMs) => {
      lookAfter = performance.now() + pauseMs;
      isLooking = false;
    });
    return undefined;
  };
}

function silentFor(wire: Wire): number {
  const since = wire.silentSince();
  return since === undefined ? 0 : performance.now() - since;
}

/** After a probe: cuts off a session that was found idle twice in the same silence. True if it was found so once. */
function judge(wires: Wires, wire: Wire, since: number | undefined, working: ReadonlySet<number> | undefined): boolean {
  const about = wires.about(wire);
  if (about === undefined || wire.silentSince() !== since) return false;
  if (wire.isReady() && (working === undefined || working.has(wire.pid()))) {
    about.suspectedAt = undefined;
    return false;
  }
  if (about.suspectedAt === since) {
    wires.cut(wire, "The connection to the database was lost without a word");
    return false;
  }
  // Its answer may be on the way.
  about.suspectedAt = since;
  return true;
}

/** Behind a pooler, which cannot say whether a session works: a statement that takes too long is cancelled, then cut off. */
function cancelOverdue({ dialler, statementMs }: ReachDeps, wires: Wires, wire: Wire): void {
  const about = wires.about(wire);
  if (about === undefined || statementMs === 0 || silentFor(wire) < statementMs) return;
  about.cancelledAt ??= performance.now();
  if (performance.now() - about.cancelledAt >= CANCEL_ANSWER_MS) {
    wires.cut(wire, `The database did not answer for ${statementMs / 1_000} s, nor to a cancellation`);
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
}
