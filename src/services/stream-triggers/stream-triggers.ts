import type { Database } from "../../repositories/database/database.ts";
import { acquireLease, releaseLease } from "../../repositories/database/leases.ts";
import { listEnabled, type TriggerRow } from "../../repositories/triggers/triggers.ts";
import type { NatsTrigger } from "../../schema/triggers/nats-trigger.ts";
import { messageOf } from "../../schema/words/errors.ts";
import type { Caller } from "../access/audit.ts";
import type { Credentials } from "../credentials/credentials.ts";
import type { Triggers } from "../triggers/triggers.ts";
import { type IncomingMessage, messageDelivery } from "./message-delivery.ts";

/** Reads a stream until `signal` is aborted: see `tools/nats/stream`. */
export type ReadStream = (
  request: StreamRequest,
  reader: { onReady(): void; take(message: IncomingMessage): Promise<void> },
  signal: AbortSignal,
) => Promise<void>;

/** Which stream is read, and by which consumer. */
export interface StreamRequest extends Omit<NatsTrigger, "durable" | "when"> {
  /** The credential's record and data. */
  broker: { name: string; type: string; data: Awaited<ReturnType<Credentials["read"]>>["data"] };
  durable: string;
  isOwn: boolean;
  description: string;
}

/** Triggers that fire for messages of NATS streams. */
export interface StreamTriggers {
  /**
   * Begins to read for triggers that no other server reads for, goes on with those of this server, and ends where a trigger is gone,
   * disabled or changed, or its lease is lost. For the background. Rejects when the database is away: what is being read goes on.
   */
  look(): Promise<void>;
  /** Ends all reading. What was taken is acknowledged or given back, and another server may begin at once. */
  end(): Promise<void>;
}

/** What {@link createStreamTriggers} needs. */
export interface StreamTriggersDeps {
  database: Database;
  triggers: Pick<Triggers, "fire" | "scope">;
  credentials: Pick<Credentials, "read">;
  readStream: ReadStream;
  /** Names this process. */
  holder: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** Reports a trigger that cannot read, once for each reason. */
  onProblem(trigger: TriggerRow, reason: string): void;
  /** Reports that messages of a trigger may come. */
  onReading(trigger: TriggerRow): void;
  /** How long a server that does not look keeps its triggers. Default {@link LEASE_MS}. */
  leaseMs?: number;
  /** First pause after a failure. Default 1 s; it doubles up to a minute. */
  pauseMs?: number;
}

const LEASE_MS = 10_000;
/** Triggers of one service that are read for. */
const TRIGGERS_MAX = 1_000;
const PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 60_000;

/** A trigger that this server reads for. */
interface Reading {
  trigger: TriggerRow;
  /** Its definition as text: another one begins anew. */
  definition: string;
  token: number;
  stopping: AbortController;
  /** Resolves when the reader has ended. Never rejects. */
  ended: Promise<void>;
  isOver: boolean;
}

/** What is known of the failures of a trigger here. */
interface Failures {
  count: number;
  reason: string;
  /** When it may be tried again; milliseconds of `now`. */
  notBefore: number;
}

/** Reads for the triggers of a database, each on one server at a time. */
export function createStreamTriggers(deps: StreamTriggersDeps): StreamTriggers {
  const { database, holder, leaseMs = LEASE_MS } = deps;
  const readings = new Map<string, Reading>();
  const failures = new Map<string, Failures>();
  let isEnding = false;

  const stop = async (reading: Reading) => {
    reading.stopping.abort();
    await reading.ended;
    readings.delete(reading.trigger.triggerId);
  };
  const lookAt = async (trigger: TriggerRow) => {
    const { triggerId } = trigger;
    const known = readings.get(triggerId);
    const mayBegin = () => (failures.get(triggerId)?.notBefore ?? 0) <= deps.now();
    if (known === undefined && !mayBegin()) return;
    const token = await acquireLease(database, leaseName(triggerId), holder, leaseMs);
    const definition = JSON.stringify([trigger.path, trigger.definition]);
    if (known !== undefined && known.definition !== definition) failures.delete(triggerId);
    if (known !== undefined && (known.isOver || token !== known.token || known.definition !== definition))
      await stop(known);
    if (token === undefined || isEnding || readings.has(triggerId) || !mayBegin()) return;
    readings.set(triggerId, begin(deps, failures, { trigger, definition, token }));
  };
  return {
    async look() {
      const triggers = isEnding ? [] : await listEnabled(database, "nats", TRIGGERS_MAX);
      const wanted = new Set(triggers.map(({ triggerId }) => triggerId));
      const gone = [...readings.values()].filter(({ trigger }) => !wanted.has(trigger.triggerId));
      for (const { trigger } of gone) failures.delete(trigger.triggerId);
      await Promise.all([...gone.map((reading) => giveUp(database, reading, stop)), ...triggers.map(lookAt)]);
    },
    async end() {
      isEnding = true;
      await Promise.all([...readings.values()].map((reading) => giveUp(database, reading, stop)));
    },
  };
}

async function giveUp(database: Database, reading: Reading, stop: (reading: Reading) => Promise<void>): Promise<void> {
  await stop(reading);
  await releaseLease(database, leaseName(reading.trigger.triggerId), reading.token);
}

function leaseName(triggerId: string): string {
  return `trigger/${triggerId}`;
}

function begin(
  deps: StreamTriggersDeps,
  failures: Map<string, Failures>,
  { trigger, definition, token }: Pick<Reading, "trigger" | "definition" | "token">,
): Reading {
  const stopping = new AbortController();
  const { triggerId } = trigger;
  const reading: Reading = { trigger, definition, token, stopping, isOver: false, ended: Promise.resolve() };
  const onReady = () => {
    failures.delete(triggerId);
    deps.onReading(trigger);
  };
  reading.ended = read(deps, trigger, onReady, stopping.signal)
    .catch((error: unknown) => {
      if (stopping.signal.aborted) return;
      const reason = messageOf(error);
      const before = failures.get(triggerId);
      const count = (before?.count ?? 0) + 1;
      const pause = Math.min((deps.pauseMs ?? PAUSE_MS) * 2 ** Math.min(count - 1, 10), PAUSE_MS_MAX);
      failures.set(triggerId, { count, reason, notBefore: deps.now() + pause });
      if (before?.reason === reason) return;
      deps.onProblem(trigger, reason);
      // Where people look for what came of their trigger.
      const verdict = { status: "failed", reason } as const;
      return deps.triggers.fire(trigger, { key: `reading/${new Date(deps.now()).toISOString()}`, verdict });
    })
    .catch(() => undefined)
    .then(() => {
      reading.isOver = true;
    });
  return reading;
}

/** Reads until it is told to end. Rejects with `FlowError` where it cannot. */
async function read(
  { credentials, triggers, readStream, now }: StreamTriggersDeps,
  trigger: TriggerRow,
  onReady: () => void,
  signal: AbortSignal,
): Promise<void> {
  const { triggerId, path, name } = trigger;
  const { durable, when, ...section } = trigger.definition.nats as NatsTrigger;
  const caller: Caller = { actorKind: "system", actor: `trigger/${path}/${name}`, rule: "trigger" };
  const { record, data } = await credentials.read(section.credential, caller, { path });
  const request: StreamRequest = {
    ...section,
    broker: { name: record.name, type: record.type, data },
    durable: durable ?? `flow_${triggerId}`,
    isOwn: durable === undefined,
    description: `Trigger ${name} of the playbook ${path}`,
  };
  const take = async (message: IncomingMessage) => {
    await triggers.fire(trigger, messageDelivery(triggers, trigger, message, now()));
  };
  await readStream(request, { onReady, take }, signal);
}
