import type { Database } from "../../repositories/database/database.ts";
import { listEnabled, type TriggerRow } from "../../repositories/triggers/triggers.ts";
import {
  CHAIN_MAX,
  deleteWatchedEnds,
  readEnds,
  takeWatchedEnds,
  type WatchedEnd,
} from "../../repositories/triggers/watched-ends.ts";
import { matchesPattern } from "../../schema/rules/access-rules.ts";
import type { Delivery } from "./delivery.ts";
import { TAKEN_MS } from "./start-fires.ts";

/** Ends that one slice takes. */
const SLICE = 100;
/** Triggers that watch executions, of which each end looks at all. */
const WATCHERS_MAX = 1_000;

type FireMany = (deliveries: { trigger: TriggerRow; delivery: Delivery }[]) => Promise<unknown>;

/**
 * Fires the triggers that watch ends of executions (control, rule 44), each once for an end: its key names it. An end is forgotten when all
 * have their rows, so that a server which dies in between leaves it to another one. Gives how many it took.
 */
export async function fireForEnds(database: Database, fireMany: FireMany): Promise<number> {
  const taken = await takeWatchedEnds(database, TAKEN_MS, SLICE);
  if (taken.length === 0) return 0;
  const watchers = await listEnabled(database, "execution", WATCHERS_MAX);
  const ends = watchers.length === 0 ? [] : await readEnds(database, taken);
  const deliveries = ends.flatMap((end) =>
    watchers.filter((one) => isWatched(one, end)).map((trigger) => ({ trigger, delivery: deliveryOf(trigger, end) })),
  );
  if (deliveries.length > 0) await fireMany(deliveries);
  await deleteWatchedEnds(database, taken);
  return taken.length;
}

function isWatched(
  { definition: { execution }, createdAt }: TriggerRow,
  { path, status, endedAt }: WatchedEnd,
): boolean {
  if (execution === undefined || endedAt < createdAt) return false;
  return execution.status.includes(status) && matchesPattern(execution.path, path);
}

function deliveryOf({ triggerId }: TriggerRow, end: WatchedEnd): Delivery {
  const { executionId, path, status, result, error, endedAt, ancestors, chain } = end;
  const why = ancestors.includes(triggerId)
    ? `Execution ${executionId} came from this trigger`
    : chain >= CHAIN_MAX
      ? `${CHAIN_MAX} ends of executions led to this one`
      : undefined;
  return {
    key: `end/${executionId}`,
    dueAt: endedAt.getTime(),
    about: { execution: { id: executionId, path, status, result, error } },
    causeId: executionId,
    ...(why !== undefined && { verdict: { status: "skipped", reason: why } }),
  };
}
