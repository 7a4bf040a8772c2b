import { type Advance, beginAdvance, decideNext } from "../engine/decide/advance.ts";
import { startExecution } from "../engine/decide/start.ts";
import type { EngineEnv } from "../engine/env.ts";
import type { Program } from "../engine/program/program.ts";
import { emptyState } from "../engine/state/state.ts";
import { loadedReferences } from "../language/template/loaded-references.ts";
import { type EventRecord, fromRecord, isMarkerType } from "../schema/rules/event-record.ts";
import { FlowError } from "../schema/words/errors.ts";
import type { EventOf, EventType, FlowEvent } from "../schema/words/event.ts";
import { type Json, type JsonObject, own, setOwn } from "../schema/words/json.ts";
import { SECRET_MASK } from "../schema/words/sealed.ts";
import { unequal } from "./compare.ts";
import { leftOut, type RecordedRun } from "./recorded-run.ts";
import { createReplayIds } from "./replay-ids.ts";

/*
 * The engine alone, over a recorded run: what workers reported is taken from the record, and everything that the engine decides is
 * compared with what it decided then: which steps begin, with which input, which arcs are taken, what loops run over, how it ends.
 * No tool is called, nothing waits.
 */

/** The first place where a replay is not as the record. */
export interface ReplayDifference {
  /** Place in the record: the event that is different, or after which something is missing. */
  eventId: number;
  /** What it is about: `step.completed of step 'load'`. */
  what: string;
  /** Where in it; empty for the event as a whole. */
  path: string;
  /** Undefined: nothing. */
  recorded: Json | undefined;
  replayed: Json | undefined;
}

/** How a replay went. */
export interface ReplayOutcome {
  /** Events that were replayed. */
  events: number;
  /** Absent: all of the record was decided again as it was. */
  difference?: ReplayDifference;
}

/** Events that the engine decides; all others are given to it. `workflow.failed` is given too, at a time limit. */
const DECIDED: ReadonlySet<string> = new Set<EventType>([
  ...(["workflow.initialized", "command.issued", "command.cancelled", "loop.started", "loop.results.stored"] as const),
  ...(["loop.results.kept", "approval.opened", "approval.notified", "approval.closed"] as const),
  ...(["loop.done", "step.completed", "step.failed", "step.skipped", "next.evaluated"] as const),
  ...(["workflow.completed", "workflow.failed", "playbook.completed", "playbook.failed"] as const),
]);

/** Whether the engine decides it. What a rerun takes over of its original is given to it: these steps did not end here. */
function isDecided(record: EventRecord): boolean {
  if (record.event_type === "command.woken") return isWokenByDecision(fromRecord(record) as EventOf<"command.woken">);
  if (!DECIDED.has(record.event_type)) return false;
  return !record.event_type.startsWith("step.") || (fromRecord(record) as { kept?: unknown }).kept === undefined;
}

/** A signal or people have woken it; else its time has come. */
function isWokenByDecision({ signal, approval }: EventOf<"command.woken">): boolean {
  return signal !== undefined || approval !== undefined;
}

/** Fields that are not compared: times, and what names the version. */
const NOT_COMPARED: ReadonlySet<string> = new Set(["at", "duration_ms", "catalog_id", "path", "trace"]);

/** Events after which nothing is decided. */
const ENDS: ReadonlySet<string> = new Set<EventType>(["playbook.completed", "playbook.failed", "execution.cancelled"]);

/** Ends a replay where the record of a run that had not ended breaks off. */
class EndOfRecord extends Error {}

/** Ends a replay at its first difference. */
class Differs extends Error {
  readonly difference: ReplayDifference;
  constructor(difference: ReplayDifference) {
    super("The replay differs");
    this.difference = difference;
  }
}

/**
 * Replays a recorded run with a version of its playbook. Throws `FlowError` FILE_UNREADABLE where a decision needs a result that the
 * record leaves out.
 */
export async function replayRun(run: RecordedRun, program: Program): Promise<ReplayOutcome> {
  const records = run.events.filter(({ event_type }) => !isMarkerType(event_type));
  const replay = createReplay(run, records, program);
  try {
    await replay.run();
    return { events: records.length };
  } catch (error) {
    if (error instanceof EndOfRecord) return { events: records.length };
    if (error instanceof Differs) return { events: replay.done(), difference: error.difference };
    throw error;
  }
}

function createReplay(run: RecordedRun, records: readonly EventRecord[], program: Program) {
  const state = emptyState();
  const ids = createReplayIds();
  const stored = new Map<string, Json>();
  const references = loadedReferences({ load: async (ref) => payloadOf(run, stored, ref) });
  const parents = new Set(records.map((record) => record["parent_event_id"]));
  const isOver = ENDS.has(records.at(-1)?.event_type ?? "");
  /** The record that is next. */
  let next = 0;
  const pending: { progress: Advance; record: EventRecord }[] = [];

  /** Called for each decided event before it is folded: it must be the next of the record. */
  const compare = <T extends FlowEvent>(decided: T): T => {
    const record = records[next];
    const after = records[next - 1];
    if (record === undefined && !isOver) throw new EndOfRecord();
    if (record === undefined || !isDecided(record)) throw new Differs(surplus(decided, after ?? record));
    const recorded = fromRecord(record);
    const same = ids.adopt(decided, recorded) as T;
    const difference = differenceOf(record, recorded, same);
    if (difference !== undefined) throw new Differs(difference);
    next += 1;
    return same;
  };
  const sealing = { open: asItIs, event: compare, value: asItIs, hideIn: asItIs, isIn: () => false };
  const envAt = (record: EventRecord | undefined): EngineEnv => ({
    now: Date.parse(record?.created_at ?? ""),
    newId: ids.fresh,
    references,
    env: {},
    iterationsAtOnce: ({ name }) => iterationsAt(records, next, name),
    sealing,
  });
  /** Decides what follows from the oldest event of which that is open; false if none is left. */
  const drain = async (): Promise<boolean> => {
    const [oldest] = pending;
    if (oldest === undefined) return false;
    const { progress } = oldest;
    const isMore = await references.evaluate(() => decideNext(progress, state, program, envAt(records[next])));
    for (const { ref, value } of progress.writes.splice(0)) stored.set(ids.replaced(ref), value);
    if (!isMore) pending.shift();
    return true;
  };
  const give = async (event: FlowEvent, record: EventRecord) => {
    next += 1;
    const following = records[next];
    const isDecidedLater = parents.has(record.event_id) && (following === undefined || !isDecided(following));
    const isAlone = pending.length === 0 && !isDecidedLater;
    pending.push({ progress: beginAdvance(state, event), record });
    if (isAlone) while (await drain());
  };
  const runAll = async () => {
    const [first] = records;
    if (first !== undefined) await give(await started(run, program, first, references, envAt(first)), first);
    while (next < records.length) {
      const record = records[next];
      if (record === undefined) break;
      const before = next;
      if (isDecided(record)) {
        while (next === before && (await drain()));
        if (next > before) continue;
        if (record.event_type !== "workflow.failed") throw new Differs(missingOf(record));
      }
      await give(fromRecord(record), record);
    }
    while (await drain());
  };
  return { run: runAll, done: () => next };
}

/** The start of the run with this version's defaults. */
async function started(
  run: RecordedRun,
  program: Program,
  record: EventRecord,
  references: ReturnType<typeof loadedReferences>,
  env: EngineEnv,
): Promise<EventOf<"playbook.initialized">> {
  const recorded = fromRecord(record) as EventOf<"playbook.initialized">;
  const { input, parent, target, trace, rerun, sealed_under: sealedUnder } = recorded;
  const request = {
    ...{ executionId: run.events[0]?.execution_id ?? "", catalogId: record.catalog_id, input },
    ...(parent !== undefined && { parent }),
    ...(target !== undefined && { target }),
    ...(trace !== undefined && { trace }),
    ...(rerun !== undefined && { rerun }),
    ...(sealedUnder !== undefined && { sealedUnder }),
    // What a rerun takes over is not rendered again.
    ...(rerun !== undefined && rerun.from !== "start" && { workload: recorded.workload }),
  };
  const { sealing: _sealing, ...open } = env;
  const fresh = await references.evaluate(() => startExecution(request, program, open));
  // Inputs that this version declares beside the recorded ones are no other way.
  const workload: JsonObject = {};
  for (const key of Object.keys(recorded.workload)) {
    if (Object.hasOwn(fresh.workload, key)) setOwn(workload, key, own(fresh.workload, key));
  }
  const difference = differenceOf(record, recorded, { ...fresh, workload });
  if (difference !== undefined) throw new Differs(difference);
  return { ...fresh, workload: { ...fresh.workload, ...recorded.workload } };
}

/** How many iterations the next command of a step has: servers choose that by how long iterations take. */
function iterationsAt(records: readonly EventRecord[], from: number, step: string): number {
  for (let at = from; at < records.length; at += 1) {
    const record = records[at];
    if (record === undefined || record.event_type !== "command.issued" || record.node_id !== step) continue;
    const { iterations } = fromRecord(record) as EventOf<"command.issued">;
    return iterations === undefined ? 1 : iterations.to - iterations.from;
  }
  return 1;
}

async function payloadOf(run: RecordedRun, stored: ReadonlyMap<string, Json>, ref: string): Promise<Json> {
  const own = stored.get(ref);
  if (own !== undefined) return own;
  const recorded = run.payloads.get(ref)?.payload;
  if (recorded !== undefined) return recorded;
  const what = `${run.file} leaves out the result ${ref} that a decision needs`;
  throw new FlowError("FILE_UNREADABLE", `${what}: ${leftOut(run, ref)}`);
}

function differenceOf(record: EventRecord, recorded: FlowEvent, replayed: FlowEvent): ReplayDifference | undefined {
  const place = { eventId: record.event_id, what: nameOf(recorded) };
  if (nameOf(recorded) !== nameOf(replayed)) {
    return { ...place, path: "", recorded: nameOf(recorded), replayed: nameOf(replayed) };
  }
  const [first] = unequal(compared(recorded), compared(replayed)).filter(
    ({ expected }) => !(JSON.stringify(expected) ?? "").includes(SECRET_MASK),
  );
  if (first === undefined) return undefined;
  return { ...place, path: first.path, recorded: first.expected, replayed: first.actual };
}

/** What is compared of an event, as JSON; variables by their names. */
function compared(event: FlowEvent): JsonObject {
  const fields = Object.entries(event).filter(([name, value]) => !NOT_COMPARED.has(name) && value !== undefined);
  const json = JSON.parse(JSON.stringify(Object.fromEntries(fields))) as JsonObject;
  if ("set" in event && event.set !== undefined) json["set"] = Object.fromEntries(event.set);
  return json;
}

function surplus(decided: FlowEvent, after: EventRecord | undefined): ReplayDifference {
  const what = after === undefined ? "the start" : `after ${nameOf(fromRecord(after))}`;
  return { eventId: after?.event_id ?? 0, what, path: "", recorded: undefined, replayed: nameOf(decided) };
}

function missingOf(record: EventRecord): ReplayDifference {
  const what = nameOf(fromRecord(record));
  return { eventId: record.event_id, what, path: "", recorded: what, replayed: undefined };
}

/** `step.completed of step 'load'`. */
function nameOf(event: FlowEvent): string {
  return "step" in event ? `${event.type} of step '${event.step}'` : event.type;
}

function asItIs<T>(value: T): T {
  return value;
}
