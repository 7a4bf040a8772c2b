import {
  DiscardPolicy,
  type JetStreamManager,
  NatsError,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamInfo,
} from "nats";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { messageOf } from "../../schema/words/errors.ts";
import { systemClock } from "../system-clock.ts";
import type { NatsSession } from "./connection.ts";
import { COMMANDS_SUBJECT } from "./message.ts";

/** Name of the JetStream stream that keeps notices of commands for a while. */
export const COMMANDS_STREAM = "FLOW_COMMANDS";
const STREAM_SUBJECTS = "flow.commands.>";

/** Older ones are found by the reaper long before. */
const STREAM_MAX_AGE_MS = 600_000;
const STREAM_BYTES_MAX = 32 * 1_048_576;

/** Most messages that are read again after a disconnection. Each costs a round trip and may name 256 commands. */
const CATCH_UP_MAX = 1_000;
/** Time that JetStream has to answer. */
const ANSWER_MS = 5_000;

/** After a disconnection, reads the notices published meanwhile. */
export interface CommandLog {
  /**
   * Follows the stream while the session lasts. Call it once the live subscription is in place: this reads what came before.
   * Resolves when that is done, or when it turns out that it cannot be, and never throws: without JetStream there is no
   * catching up, and live notices come all the same. What is published from then on is kept.
   */
  follow(session: NatsSession): Promise<void>;
}

/** A place in the stream. A stream that was made anew counts from 1 again. */
interface Position {
  created: string;
  sequence: number;
}

/** Before everything, in whatever stream. */
const BEGINNING: Position = { created: "", sequence: 0 };

/**
 * Live notices come over a plain subscription, which needs no stream and survives the loss of one; the stream fills the gap
 * after a disconnection, also that of a slow consumer. An ordered consumer for both would stop with the stream, and the
 * driver's restarts at its old sequence in a new one, where it receives nothing until that number is reached.
 * | Every `lookMs` (default 10 s) the stream is checked: created again if it was deleted, and the position noted from which to
 * read after a disconnection. That position is the one of the check before the last: messages stored by then have certainly
 * been delivered.
 */
export function createCommandLog(
  logger: Logger,
  onMessage: (data: Uint8Array) => void,
  lookMs: number = 10_000,
): CommandLog {
  /** Everything up to here was delivered. Undefined in the first session: a process that just started has read the database. */
  let delivered: Position | undefined;
  let lastReason = "";

  /** Gives the end of the stream, having read what is between `from` and it. */
  const look = async ({ connection, signal }: NatsSession, from: Position | undefined): Promise<Position> => {
    const manager = await connection.jetstreamManager({ timeout: ANSWER_MS });
    const { created, state } = await ensureStream(manager, logger);
    lastReason = "";
    if (from !== undefined) {
      const after = from.created === created ? from.sequence : 0;
      const start = Math.max(after + 1, state.first_seq, state.last_seq - CATCH_UP_MAX + 1);
      for (let sequence = start; sequence <= state.last_seq; sequence += 1) {
        signal.throwIfAborted();
        const data = await readMessage(manager, sequence);
        if (data !== undefined) onMessage(data);
      }
    }
    return { created, sequence: state.last_seq };
  };

  const failed = (error: unknown) => {
    const reason = error instanceof NatsError ? (error.api_error?.description ?? error.code) : messageOf(error);
    const isNew = reason !== lastReason;
    lastReason = reason;
    logger[isNew ? "warn" : "debug"]({ stream: COMMANDS_STREAM, reason }, UNKEPT);
  };

  /** One look; gives the end that it found, or undefined when it failed. */
  const tryLook = (session: NatsSession, from: Position | undefined): Promise<Position | undefined> =>
    look(session, from).catch((error: unknown) => {
      // The end of the connection is logged elsewhere.
      if (!session.signal.aborted && !session.connection.isClosed()) failed(error);
      return undefined;
    });

  const keepLooking = async (session: NatsSession, first: Position | undefined): Promise<void> => {
    let last = first;
    while (!session.signal.aborted) {
      await systemClock.sleep(lookMs, session.signal).catch(() => undefined);
      if (session.signal.aborted) return;
      // Where the first look failed, what it was to read is still to be read.
      const next = await tryLook(session, last === undefined ? delivered : undefined);
      if (next === undefined) continue;
      delivered = last ?? next;
      last = next;
    }
  };

  return {
    async follow(session) {
      const from = delivered;
      // A session that ends before the end of the stream was seen: the next one reads all of it.
      delivered ??= BEGINNING;
      const end = await tryLook(session, from);
      if (end !== undefined) delivered = end;
      void keepLooking(session, end);
    },
  };
}

const UNKEPT = "no JetStream stream: live notices come, those of a disconnection do not. Polling finds their commands";

/** JetStream's code for a stream that is not there. */
const NO_STREAM = 10_059;

/** The first server creates the stream. An existing one is used as it is, if it accepts our subject. */
async function ensureStream({ streams }: JetStreamManager, logger: Logger): Promise<StreamInfo> {
  let info: StreamInfo;
  try {
    info = await streams.info(COMMANDS_STREAM);
  } catch (error) {
    if (!(error instanceof NatsError) || error.api_error?.err_code !== NO_STREAM) throw error;
    const made = await streams.add({
      name: COMMANDS_STREAM,
      description: "Notices of commands, for servers that were disconnected",
      subjects: [STREAM_SUBJECTS],
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      storage: StorageType.Memory,
      max_age: nanos(STREAM_MAX_AGE_MS),
      max_bytes: STREAM_BYTES_MAX,
    });
    logger.info({ stream: COMMANDS_STREAM }, "made the stream that keeps notices of commands");
    return made;
  }
  const { subjects } = info.config;
  if ([STREAM_SUBJECTS, COMMANDS_SUBJECT, "flow.>", ">"].some((subject) => subjects.includes(subject))) return info;
  throw new Error(`a stream of this name exists and does not take ${COMMANDS_SUBJECT}`);
}

/** Undefined if it is already gone. */
async function readMessage({ streams }: JetStreamManager, sequence: number): Promise<Uint8Array | undefined> {
  try {
    const { subject, data } = await streams.getMessage(COMMANDS_STREAM, { seq: sequence });
    return subject === COMMANDS_SUBJECT ? data : undefined;
  } catch (error) {
    if (error instanceof NatsError && error.api_error?.code === 404) return undefined;
    throw error;
  }
}
