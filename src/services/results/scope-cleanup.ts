import type { Database } from "../../repositories/database/database.ts";
import { takeEnded, takeOfStep } from "../../repositories/results/delete.ts";
import { findOwners, findStepPrefixes } from "../../repositories/results/scopes.ts";
import type { ResultScope } from "../../schema/api/results.ts";
import type { ResultRemover } from "./delete-results.ts";
import type { ResultsObserver } from "./observer.ts";

/** The scopes that ended with a commit. */
export interface Ended {
  /** When it was written, by the database's clock, milliseconds since 1970. */
  at: number;
  executionIds: readonly string[];
  steps: readonly { executionId: string; step: string }[];
}

/** Deletes results with what their scope names (interface specification, Result references). */
export interface ResultEnds {
  /** This server keeps a result that ends with something. */
  note(result: { executionId: string; rootExecutionId: string; ref: string; scope: ResultScope }): void;
  /**
   * Something has ended. Costs nothing where this server keeps nothing that ends with it; else its results are deleted soon
   * after. Never throws: {@link sweep} finds what was missed, and what other servers keep.
   */
  tell(ended: Ended): void;
  /** Looks for results whose step, execution or root has ended; deletes at most some thousands. Gives how many. */
  sweep(): Promise<number>;
  /** Resolves when everything announced so far is deleted. */
  idle(): Promise<void>;
  /** Stops after the current statement. The next sweep finds the rest, here or on another server. */
  close(): Promise<void>;
}

/** What deleting by scope needs. */
export interface ResultEndsDeps {
  database: Database;
  remover: ResultRemover;
  observer: ResultsObserver;
  /** Whether a step of an open execution has ended, if it ever started. */
  isStepOver(executionId: string, step: string): Promise<boolean>;
  /** Results of one statement. Default 500. */
  rowsMax?: number;
}

/** Executions, roots and steps that are known to have results that end with them. Beyond it the sweep finds them. */
const NOTED_MAX = 100_000;
const OWNERS_MAX = 500;
/** Statements of one kind in one sweep. */
const ROUNDS_MAX = 20;
/** Open executions whose steps are looked at in one sweep: each may have to be loaded. */
const LOADED_MAX = 20;
const STEPS_MAX = 100;
/** Younger results may belong to a step that has just started again. */
const STEP_AGE_MS = 60_000;

const STEP_PREFIX = /^noetl:\/\/execution\/\d+\/step\/([^/]+)\//;

/** What references of a step's results begin with. */
function prefixOf(executionId: string, step: string): string {
  return `noetl://execution/${executionId}/step/${encodeURIComponent(step)}/`;
}

/** Whose end it is that a reference's step has; undefined for a reference that names no step. */
export function stepOfRef(ref: string): string | undefined {
  const segment = STEP_PREFIX.exec(ref)?.[1];
  try {
    return segment === undefined ? undefined : decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** Nothing of it runs where all results are permanent: no statement, and no more than a look into an empty set. */
export function createResultEnds(deps: ResultEndsDeps): ResultEnds {
  const { database, remover, observer, rowsMax = 500 } = deps;
  const noted = new Set<string>();
  let isClosing = false;
  const { soon, idle } = createSerialQueue((error) => observer.failed("kv", "end", error));
  /** True when it was noted; it is not any more. */
  const isNoted = (key: string) => noted.size > 0 && noted.delete(key);

  /** Pages until one is not full, or `rounds` of them. */
  const takePages = async (take: (limit: number) => ReturnType<typeof takeEnded>, rounds: number) => {
    let removed = 0;
    for (let round = 0; round < rounds && !isClosing; round += 1) {
      const taken = await take(rowsMax);
      removed += await remover.removeTaken(taken, "scope");
      if (taken.count < rowsMax) break;
    }
    return removed;
  };
  const endOwners = (owner: "execution" | "root", ids: readonly string[], rounds = Number.POSITIVE_INFINITY) =>
    takePages((limit) => takeEnded(database, owner, ids, limit), rounds);
  /** Of a step that began anew meanwhile the results of before: those that are older than its end. */
  const endStep = (executionId: string, prefix: string, before: Date, rounds = Number.POSITIVE_INFINITY) =>
    takePages((limit) => takeOfStep(database, { executionId, prefix, before }, limit), rounds);

  const walk = createWalk(database);
  return {
    note({ executionId, rootExecutionId, ref, scope }) {
      if (scope === "permanent") return;
      // The oldest are the ones whose end another server wrote, or that last the longest: the sweep has them.
      for (const key of noted)
        if (noted.size >= NOTED_MAX) noted.delete(key);
        else break;
      noted.add(scope === "workflow" ? `root ${rootExecutionId}` : executionId);
      const step = scope === "step" ? stepOfRef(ref) : undefined;
      if (step !== undefined) noted.add(prefixOf(executionId, step));
    },
    tell({ at, executionIds, steps }) {
      if (noted.size === 0) return;
      for (const { executionId, step } of steps) {
        const prefix = prefixOf(executionId, step);
        if (isNoted(prefix)) soon(() => endStep(executionId, prefix, new Date(at)));
      }
      const executions = executionIds.filter(isNoted);
      const roots = executionIds.filter((id) => isNoted(`root ${id}`));
      if (executions.length > 0) soon(() => endOwners("execution", executions));
      if (roots.length > 0) soon(() => endOwners("root", roots));
    },
    async sweep() {
      let removed = 0;
      for (const scope of ["execution", "step", "workflow"] as const) {
        const { ended, open } = await walk(scope);
        const owner = scope === "workflow" ? "root" : "execution";
        if (ended.length > 0) removed += await endOwners(owner, ended, ROUNDS_MAX);
        if (scope !== "step") continue;
        for await (const { executionId, prefix, before } of endedSteps(deps, open)) {
          removed += await endStep(executionId, prefix, before, ROUNDS_MAX);
        }
      }
      return removed;
    },
    idle,
    async close() {
      isClosing = true;
      await idle();
    },
  };
}

/** Does one work after another, in order. `onFailed` gets the error of a work that failed; the others go on. */
function createSerialQueue(onFailed: (error: unknown) => void) {
  const due: (() => Promise<unknown>)[] = [];
  let running: Promise<void> | undefined;
  const drain = async () => {
    for (let next = due.shift(); next !== undefined; next = due.shift()) await next().catch(onFailed);
    running = undefined;
  };
  return {
    soon(work: () => Promise<unknown>) {
      due.push(work);
      running ??= drain();
    },
    async idle() {
      while (running !== undefined) await running;
    },
  };
}

/** Of open executions the steps that have results and have ended; the first executions of the list only. */
async function* endedSteps({ database, isStepOver }: ResultEndsDeps, open: readonly string[]) {
  for (const executionId of open.slice(0, LOADED_MAX)) {
    for (const { prefix, before } of await findStepPrefixes(database, executionId, STEP_AGE_MS, STEPS_MAX)) {
      const step = stepOfRef(prefix);
      if (step !== undefined && (await isStepOver(executionId, step))) yield { executionId, prefix, before };
    }
  }
}

/** Goes through the owners of results page by page, one page each time it is called, and begins anew after the last. */
function createWalk(database: Database) {
  const places = new Map<string, string>();
  return async (scope: "execution" | "step" | "workflow") => {
    // Of the executions of a page that are open only some are looked at: pages of steps are no longer than that.
    const limit = scope === "step" ? LOADED_MAX : OWNERS_MAX;
    const page = await findOwners(database, scope, places.get(scope) ?? "0", limit);
    places.set(scope, page.next ?? "0");
    return page;
  };
}
