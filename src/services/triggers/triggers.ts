import { createHash } from "node:crypto";
import { duesBetween } from "../../language/words/schedule.ts";
import { coalesce } from "../../platform/concurrency/coalesce.ts";
import type { Database } from "../../repositories/database/database.ts";
import { unavailable } from "../../repositories/database/error-codes.ts";
import { reserveIdBlock, reserveIds } from "../../repositories/database/ids.ts";
import { type FireRow, findFires, insertFires, listFires, type NewFire } from "../../repositories/triggers/fires.ts";
import {
  databaseNow,
  disableTrigger,
  enableTrigger,
  findTrigger,
  findTriggerAt,
  listNextTriggers,
  listTriggers,
  type TriggerFilter,
  type TriggerRow,
} from "../../repositories/triggers/triggers.ts";
import type { FireStatus, TriggerKind } from "../../schema/triggers/trigger.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { isStorable } from "../../schema/words/wire.ts";
import { nextTimeOf } from "../catalog/activate-triggers.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { createIdAllocator, type IdAllocator } from "../orchestration/memory/id-allocator.ts";
import { encodeCursor, idCursor, textCursor } from "../pagination-cursor.ts";
import type { Delivery } from "./delivery.ts";
import { type FireScope, fireScope, renderInput } from "./fire-scope.ts";
import {
  createFireStarts,
  type FireStarts,
  queuedOf,
  type StartFires,
  type StartFiresDeps,
  TAKEN_MS,
} from "./start-fires.ts";
import { createSweep } from "./sweep.ts";
import { fireForEnds } from "./watch-ends.ts";

/** Longest key that is kept as it is, in characters: it is in an index. Others may come from outside. */
const KEY_MAX = 512;

/** A key as it is kept: a long one, or one that PostgreSQL does not store, by its hash. */
function keptKey(key: string): string {
  if (key.length <= KEY_MAX && isStorable(key)) return key;
  return `sha256/${createHash("sha256").update(key).digest("hex")}`;
}

/** What has become of a delivery. */
export interface Fired {
  fireId: string;
  status: FireStatus;
  executionId: string | null;
  reason: string | null;
  /** The trigger has fired for this key before, and this is what came of it. */
  isRepeated: boolean;
  /** When it fired: for a repeat, the first time. Milliseconds since 1970. */
  firedAt: number;
}

/** The use cases of triggers. Unknown ids: `FlowError` NOT_FOUND. */
export interface Triggers {
  /** In the order of paths and names. Throws `FlowError` INVALID_INPUT for a cursor of another list. */
  list(filter: TriggerFilter, page: PageQuery): Promise<Listed<TriggerRow>>;
  /** Those that fire at a time, the soonest first. */
  soonest(filter: TriggerFilter, limit: number): Promise<TriggerRow[]>;
  find(triggerId: string): Promise<TriggerRow>;
  /** The trigger of a kind with an address, also one that is disabled; undefined if not found. */
  findAt(kind: TriggerKind, address: string): Promise<TriggerRow | undefined>;
  /** Nothing changes of one that is so already. */
  enable(triggerId: string): Promise<boolean>;
  disable(triggerId: string): Promise<boolean>;
  /** The next `count` times of a schedule after a moment, now by default; none of another kind. */
  next(triggerId: string, count: number, from?: number): Promise<number[]>;
  /** Newest first. */
  fires(triggerId: string, page: PageQuery & { status?: FireStatus }): Promise<Listed<FireRow>>;
  /**
   * Fires a trigger for a delivery, whether it is enabled or not. When it resolves, the fire is durable, and whatever restarts it starts one
   * execution at most; a repeated key starts nothing, and answers what came of the first. `queued`: it starts when it may.
   */
  fire(trigger: TriggerRow, delivery: Delivery): Promise<Fired>;
  /** The same for several deliveries, each with its trigger, written together. In their order. */
  fireMany(deliveries: readonly { trigger: TriggerRow; delivery: Delivery }[]): Promise<Fired[]>;
  /** The names that the trigger's templates read for a delivery. */
  scope(trigger: TriggerRow, about: FireScope): JsonObject;
  /** Fires what has come due and decides about what waits. For the background. */
  sweep(): Promise<void>;
}

/** What {@link createTriggers} needs. */
export interface TriggersDeps extends StartFiresDeps {
  /** Readable as `env` in inputs. */
  env: JsonObject;
  /** Milliseconds of a clock that does not jump. */
  busy(): number;
}

/** The triggers of a database. */
export function createTriggers(deps: TriggersDeps): Triggers {
  const { database } = deps;
  const { start, startNew } = createFireStarts(deps);
  const ids = createIdAllocator((count) => reserveIdBlock(database, count), deps.busy);
  const find = async (triggerId: string) => {
    const row = await findTrigger(database, triggerId);
    if (row === undefined) throw unknownTrigger(triggerId);
    return row;
  };
  const fireMany = createFireMany({ ...deps, ids }, start);
  return {
    async list(filter, { limit, cursor }) {
      const key = cursor === undefined ? {} : { cursor: placeOf(textCursor(cursor)) };
      const { items, next } = await listTriggers(database, filter, { limit, ...key });
      return { items, nextCursor: next === undefined ? null : encodeCursor(next.join("\n")) };
    },
    soonest: (filter, limit) => listNextTriggers(database, filter, limit),
    find,
    findAt: (kind, address) => findTriggerAt(database, kind, address),
    async enable(triggerId) {
      const { definition, activeSince } = await find(triggerId);
      const countedFrom = await databaseNow(database);
      const next = nextTimeOf(triggerId, definition, { countedFrom, activeSince: activeSince.getTime() });
      return await changed(triggerId, enableTrigger(database, triggerId, { countedFrom, ...next }));
    },
    disable: (triggerId) => changed(triggerId, disableTrigger(database, triggerId)),
    async next(triggerId, count, from) {
      const { definition, activeSince } = await find(triggerId);
      if (definition.schedule === undefined) return [];
      const start = from ?? (await databaseNow(database));
      const until = Number.POSITIVE_INFINITY;
      return duesBetween(definition.schedule, { from: start, until, activeSince: activeSince.getTime() }, count);
    },
    async fires(triggerId, { limit, cursor, status }) {
      await find(triggerId);
      const key = cursor === undefined ? {} : { cursor: idCursor(cursor) };
      const filter = { triggerId, ...(status === undefined ? {} : { status }) };
      const { items, next } = await listFires(database, filter, { limit, ...key });
      return { items, nextCursor: next === undefined ? null : encodeCursor(next) };
    },
    fire: createFire({ ...deps, ids }, startNew, fireMany),
    fireMany,
    scope: (trigger, about) => fireScope(trigger, about, deps.env),
    sweep: createSweep({ ...deps, start, fireForEnds: () => fireForEnds(database, fireMany) }),
  };
}

/** Deliveries that are written together at most. */
const TOGETHER_MAX = 100;
/** Writes that are under way at a time. */
const LANES = 2;

/**
 * Creates {@link Triggers.fire}. A delivery that starts an execution right away costs one commit, in which its fire is written too. All others
 * are written first. Of these, those that arrive while others are being written share the next write, as each alone costs the database three
 * commits; those whose executions may not overlap are decided one after another anyway.
 */
function createFire(
  deps: TriggersDeps & { ids: IdAllocator },
  startNew: FireStarts["startNew"],
  fireMany: Triggers["fireMany"],
): Triggers["fire"] {
  const together = coalesce(async (_lane, asked: readonly Parameters<Triggers["fireMany"]>[0][number][]) => {
    const fired = await fireMany(asked);
    return new Map(asked.map((one, index) => [one, fired[index]]));
  }, TOGETHER_MAX);
  const write = async (trigger: TriggerRow, delivery: Delivery) => {
    const one = { trigger, delivery };
    const alone = async () => (await fireMany([one]))[0];
    const shared = async () => (await together(laneOf(delivery.key), one)).get(one);
    // One that the database refuses must not take others with it.
    const again = (error: unknown) => (unavailable(error) === undefined ? alone() : Promise.reject(error));
    const fired = await (trigger.definition.overlap === "allow" ? shared().catch(again) : alone());
    if (fired === undefined) throw new Error("a delivery came to nothing");
    return fired;
  };
  const startAtOnce = createStartAtOnce(deps, startNew);
  return async (trigger, delivery) => {
    const done = await startAtOnce(trigger, delivery);
    if (done === undefined) return await write(trigger, delivery);
    return "verdict" in done ? await write(trigger, { ...delivery, verdict: done.verdict }) : done;
  };
}

/** Fires for a delivery that need not wait for anything. Undefined: it is to be written first. `verdict`: it starts nothing. */
function createStartAtOnce(deps: TriggersDeps & { ids: IdAllocator }, startNew: FireStarts["startNew"]) {
  // A repeat would refuse the write of all that start in the same moment.
  const known = coalesce((_, fires: readonly NewFire[]) => findFires(deps.database, fires));
  return async (
    trigger: TriggerRow,
    delivery: Delivery,
  ): Promise<Fired | { verdict: NonNullable<Delivery["verdict"]> } | undefined> => {
    const mayOverlap = trigger.definition.overlap === "allow" || delivery.always === true;
    if (!mayOverlap || delivery.verdict !== undefined) return undefined;
    const [fireId = ""] = await idsFor(deps, 1);
    const fire = newFire(deps, { trigger, delivery }, fireId);
    if (fire.status !== "queued") return undefined;
    const { triggerId, key, firedAt } = fire;
    const row = (await known("", fire)).find((one) => one.triggerId === triggerId && one.key === key);
    if (row !== undefined) {
      const { status, executionId, reason } = row;
      return { fireId: row.fireId, status, executionId, reason, isRepeated: true, firedAt: row.firedAt.getTime() };
    }
    const outcome = await startNew(trigger, fire);
    if (outcome === undefined) return undefined;
    const { status, executionId, reason } = outcome;
    if (status !== "started") return { verdict: { status, reason: reason ?? "" } };
    return { fireId, status, executionId, reason, isRepeated: false, firedAt };
  };
}

/** A key has one lane, where its repeat comes after it: what came of the first is known by then. Most keys end with a digit or letter of chance. */
function laneOf(key: string): string {
  return String((key.codePointAt(key.length - 1) ?? 0) % LANES);
}

/** Creates {@link Triggers.fireMany}. */
function createFireMany(deps: TriggersDeps & { ids: IdAllocator }, start: StartFires): Triggers["fireMany"] {
  const { database } = deps;
  return async (deliveries) => {
    const fireIds = await idsFor(deps, deliveries.length);
    const fires = deliveries.map((one, index) => newFire(deps, one, fireIds[index] ?? ""));
    const isNew = new Set(await insertFires(database, fires, TAKEN_MS));
    const queued = fires.filter(({ fireId, status }) => isNew.has(fireId) && status === "queued");
    const rows = new Map(deliveries.map(({ trigger }) => [trigger.triggerId, trigger]));
    for (const { fireId, status, triggerId } of fires) {
      const kind = rows.get(triggerId)?.kind;
      if (status !== "queued" && isNew.has(fireId) && kind !== undefined) deps.onFired({ kind, status, lateMs: 0 });
    }
    const outcomes = await start(queued.map(queuedOf), rows);
    const open = fires.filter(
      ({ fireId, status }) => !isNew.has(fireId) || (status === "queued" && !outcomes.has(fireId)),
    );
    const written = open.length === 0 ? [] : await findFires(database, open);
    return fires.map((fire) => {
      const { fireId, triggerId, key } = fire;
      const isRepeated = !isNew.has(fireId);
      const outcome =
        outcomes.get(fireId) ?? written.find((row) => row.triggerId === triggerId && row.key === key) ?? fire;
      const executionId = "executionId" in outcome ? outcome.executionId : null;
      const id = "fireId" in outcome ? outcome.fireId : fireId;
      const firedAt = "firedAt" in outcome ? new Date(outcome.firedAt).getTime() : fire.firedAt;
      return { fireId: id, status: outcome.status, executionId, reason: outcome.reason, isRepeated, firedAt };
    });
  };
}

/** Ids of new fires. Reserving some for each delivery alone would be one more commit for it. */
async function idsFor({ database, ids }: { database: Database; ids: IdAllocator }, count: number): Promise<string[]> {
  if (count > TOGETHER_MAX) return await reserveIds(database, count);
  if (!ids.isReady()) await ids.ready();
  return Array.from({ length: count }, () => String(ids.next()));
}

/** A path has no line break. */
function placeOf(cursor: string): readonly [string, string] {
  const end = cursor.indexOf("\n");
  return [cursor.slice(0, Math.max(0, end)), cursor.slice(end + 1)];
}

function newFire(
  { now, env }: TriggersDeps,
  { trigger, delivery }: { trigger: TriggerRow; delivery: Delivery },
  fireId: string,
): NewFire {
  const firedAt = now();
  const { key, dueAt = firedAt, names = {}, about = {}, always = false, causeId = null, verdict } = delivery;
  const fire = { fireId, triggerId: trigger.triggerId, key: keptKey(key), dueAt, firedAt, always, causeId };
  if (verdict !== undefined) return { ...fire, ...verdict, input: null };
  const rendered = renderInput(trigger, { dueAt, firedAt, names, about }, env);
  if ("reason" in rendered) return { ...fire, status: "failed", reason: rendered.reason, input: null };
  return { ...fire, status: "queued", reason: null, input: rendered.input };
}

async function changed(triggerId: string, written: Promise<boolean | undefined>): Promise<boolean> {
  const isChanged = await written;
  if (isChanged === undefined) throw unknownTrigger(triggerId);
  return isChanged;
}

function unknownTrigger(triggerId: string): FlowError {
  return new FlowError("NOT_FOUND", `There is no trigger ${triggerId}`);
}
