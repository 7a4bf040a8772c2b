import type { Database } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import {
  type AdvancedTrigger,
  advanceTriggers,
  type DueTrigger,
  type ScheduledFire,
  takeDueTriggers,
} from "../../repositories/triggers/due-triggers.ts";
import { takeQueuedFires } from "../../repositories/triggers/fires.ts";
import { findTriggers, type TriggerRow } from "../../repositories/triggers/triggers.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { renderInput } from "./fire-scope.ts";
import { type DuesPlan, type PlannedDue, planDues } from "./plan-dues.ts";
import { type FiredNotice, queuedOf, type StartFires, TAKEN_MS } from "./start-fires.ts";

/** Schedules, or fires, that one slice takes. */
const SLICE = 250;
/** Slices of schedules that start executions at a time, while the next is written: neither the database nor the server waits for the other. */
const STARTING_MAX = 2;
/** How long one run works, ms: then others get their turn. */
const RUN_MS = 5_000;

/** What {@link createSweep} needs. */
export interface SweepDeps {
  database: Database;
  start: StartFires;
  /** Fires for ends of executions that were noted; gives how many these were. */
  fireForEnds(): Promise<number>;
  /** Readable as `env` in inputs. */
  env: JsonObject;
  /** A name that no other call has. */
  newName(): string;
  /** Milliseconds of a clock that does not jump. */
  busy(): number;
  onFired(notice: FiredNotice): void;
}

/**
 * Fires the schedules whose time has come, and decides about fires that wait or that a server has left. Any number of servers may do so at the
 * same time; each takes other rows.
 */
export function createSweep(deps: SweepDeps): () => Promise<void> {
  return async () => {
    const end = deps.busy() + RUN_MS;
    const starting: Promise<unknown>[] = [];
    for (let isFull = true; isFull && deps.busy() < end; ) {
      const ends = await deps.fireForEnds();
      const due = await fireDue(deps);
      if (starting.length >= STARTING_MAX) await starting.shift();
      starting.push(due.start());
      const queued = await decideQueued(deps);
      isFull = ends > 0 || due.count >= SLICE || queued >= SLICE;
    }
    await Promise.all(starting);
  };
}

async function decideQueued({ database, start }: SweepDeps): Promise<number> {
  const fires = await takeQueuedFires(database, TAKEN_MS, SLICE);
  if (fires.length === 0) return 0;
  const rows = await findTriggers(database, [...new Set(fires.map(({ triggerId }) => triggerId))]);
  await start(fires, new Map(rows.map((row) => [row.triggerId, row])));
  return fires.length;
}

/** A slice of schedules whose fires are written. */
interface DueSlice {
  /** Schedules that were due. */
  count: number;
  /** Starts executions for those of its fires that are queued. Never rejects. */
  start(): Promise<unknown>;
}

async function fireDue(deps: SweepDeps): Promise<DueSlice> {
  const { database, env, newName, onFired } = deps;
  const takenBy = newName();
  const taken = await takeDueTriggers(database, { takenBy, leaseMs: TAKEN_MS, limit: SLICE });
  if (taken.length === 0) return { count: 0, start: async () => undefined };
  const planned = taken.map((row) => ({ row, plan: planOf(row) }));
  const count = planned.reduce((sum, { plan }) => sum + plan.dues.length, 0);
  const ids = count === 0 ? [] : await reserveIds(database, count);
  const fires = planned.flatMap(({ row, plan }) =>
    plan.dues.map((due) => fireOf(row, due, { fireId: ids.shift() ?? "", env })),
  );
  const advanced: AdvancedTrigger[] = planned.map(({ row, plan: { countedFrom, nextDueAt, wakeAt } }) => ({
    ...{ triggerId: row.triggerId, countedFrom, nextDueAt, wakeAt },
  }));
  const written = new Set(await advanceTriggers(database, { takenBy, leaseMs: TAKEN_MS }, advanced, fires));
  const triggers = new Map<string, TriggerRow>(taken.map((row) => [row.triggerId, row]));
  for (const { fireId, status, triggerId, dueAt } of fires) {
    const row = triggers.get(triggerId) as DueTrigger | undefined;
    if (row === undefined || status === "queued" || !written.has(fireId)) continue;
    onFired({ kind: row.kind, status, lateMs: row.now.getTime() - dueAt });
  }
  const queued = fires.filter(({ fireId, status }) => status === "queued" && written.has(fireId));
  return { count: taken.length, start: () => deps.start(queued.map(queuedOf), triggers) };
}

function planOf({ triggerId, definition, activeSince, countedFrom, now }: DueTrigger): DuesPlan {
  const { schedule, catchup } = definition;
  const nothing = { dues: [], countedFrom: countedFrom.getTime(), nextDueAt: null, wakeAt: null };
  if (schedule === undefined) return nothing;
  const moments = { activeSince: activeSince.getTime(), countedFrom: countedFrom.getTime() };
  return planDues({ triggerId, schedule, catchup, ...moments }, now.getTime());
}

/** The key of a fire of a schedule: the time, and nothing of when or where it was noticed. */
export function dueKey(due: number): string {
  return new Date(due).toISOString();
}

function fireOf(
  row: DueTrigger,
  { due, is, upTo }: PlannedDue,
  { fireId, env }: { fireId: string; env: JsonObject },
): ScheduledFire {
  const fire = { fireId, triggerId: row.triggerId, key: dueKey(due), dueAt: due, waits: is === "late", input: null };
  if (is === "missed") {
    const rest = upTo === undefined ? "" : `, as were all after it up to ${new Date(upTo).toISOString()}`;
    return { ...fire, status: "missed", reason: `No server fired it within a minute${rest}` };
  }
  const rendered = renderInput(row, { dueAt: due, firedAt: row.now.getTime() }, env);
  if ("reason" in rendered) return { ...fire, status: "failed", reason: rendered.reason };
  return { ...fire, status: "queued", reason: null, input: rendered.input };
}
