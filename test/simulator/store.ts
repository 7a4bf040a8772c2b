import type { ExecutionStore } from "../../src/ports/execution-store.ts";
import { FlowError } from "../../src/schema/words/errors.ts";
import type { Process, World } from "./process.ts";

/** The connection broke: it is unknown what was written. */
export class ConnectionLost extends Error {}
/** The statement was taken back as a whole: try again. */
export class Deadlock extends Error {}

/** What a server makes of the store's errors. */
export const STORE_ERRORS = {
  isRetryable: (error: unknown) => error instanceof Deadlock,
  unavailable: (error: unknown) =>
    error instanceof ConnectionLost || error instanceof Deadlock
      ? new FlowError("UNAVAILABLE", error.message, { cause: error })
      : undefined,
};

/**
 * The store as one process has it: calls take time and fail. Once under way, a statement is carried out whatever becomes of
 * the sender.
 */
export function disturbedStore(store: ExecutionStore, process: Process, world: World): ExecutionStore {
  const send = disturbed(process, world);
  return {
    reserveIds: (count) => send(() => store.reserveIds(count)),
    find: (id) => send(() => store.find(id)),
    snapshotUpTo: (id, eventId, format) => send(() => store.snapshotUpTo(id, eventId, format)),
    eventsAfter: (id, after, limit) => send(() => store.eventsAfter(id, after, limit)),
    flush: (flush) => send(() => store.flush(flush), "writes"),
    pendingRequirements: (after, limit) => send(() => store.pendingRequirements(after, limit)),
    pendingCommands: (wanted) => send(() => store.pendingCommands(wanted)),
    claimableCommands: (ids, abandoned) => send(() => store.claimableCommands(ids, abandoned)),
    returnedCommands: (limit) => send(() => store.returnedCommands(limit)),
    commandBodies: (ids) => send(() => store.commandBodies(ids)),
    unprocessedBatches: (idleMs, limit) => send(() => store.unprocessedBatches(idleMs, limit)),
    executionsOf: (commandIds) => send(() => store.executionsOf(commandIds)),
    findBatch: (caller, key) => send(() => store.findBatch(caller, key)),
    findStart: (caller, key) => send(() => store.findStart(caller, key)),
    overdueExecutions: (limit) => send(() => store.overdueExecutions(limit)),
    takeDueWaits: (leaseMs, limit) => send(() => store.takeDueWaits(leaseMs, limit), "writes"),
  };
}

/** Sends statements of a process to a store. */
export function disturbed(process: Process, { clock, random, faults }: World) {
  const latency = () => (faults.happens("storeSlow") ? random.between(300, 12_000) : random.between(0, 12));
  return async <T>(statement: () => Promise<T>, locks: "writes" | "reads" = "reads"): Promise<T> => {
    await process.gate();
    const isAway = faults.happens("storeAway");
    const isLate = !isAway && faults.happens("storeLate");
    if (isLate) clock.after(random.between(10, 3_000), () => void statement().catch(() => undefined));
    if (isAway || isLate) {
      await clock.sleep(latency());
      await process.gate();
      throw new ConnectionLost("The connection was lost");
    }
    const answer = await new Promise<T>((resolve, reject) => {
      clock.after(latency(), () => {
        if (locks === "writes" && faults.happens("storeBusy")) reject(new Deadlock("Another statement was in the way"));
        else statement().then(resolve, reject);
      });
    });
    const isLost = faults.happens("answerAway");
    await clock.sleep(latency());
    await process.gate();
    if (isLost) throw new ConnectionLost("The connection was lost");
    return answer;
  };
}
