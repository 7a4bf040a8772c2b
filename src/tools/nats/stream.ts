import { AckPolicy, type ConsumerInfo, DeliverPolicy, type JetStreamManager, type JsMsg, NatsError, nanos } from "nats";
import type { EgressGuard } from "../../platform/http/egress.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { connectNats } from "./connect.ts";
import { describeTarget, type NatsTarget } from "./target.ts";

/** A message of a stream. */
export interface StreamMessage {
  subject: string;
  data: Uint8Array;
  /** By their names in lower case; of a repeated one the last. */
  headers: Record<string, string>;
  sequence: number;
  /** When the stream took it: nanoseconds since 1970. With the sequence it is one message, also where a stream was made anew. */
  timestampNanos: number;
  isRedelivered: boolean;
}

/** A durable consumer of a stream: which messages it gets, and how. */
export interface StreamConsumer {
  stream: string;
  /** Absent: all of the stream. */
  subject?: string;
  durable: string;
  /** Made for this reader alone: its settings follow what is said here. Any other is used as it is. */
  isOwn: boolean;
  description: string;
  /** Where it begins, if it is made. */
  deliver: "all" | "new";
  maxInFlight: number;
  ackWaitMs: number;
}

/** What {@link readStream} needs. */
export interface StreamReader {
  target: NatsTarget;
  egress: EgressGuard;
  /** Called when the consumer is there and messages may come. */
  onReady(): void;
  /** Acknowledged when it resolves; when it rejects, the message comes again. At most `maxInFlight` run at a time. */
  take(message: StreamMessage): Promise<void>;
}

const CONNECT_MS = 5_000;
/** Time that JetStream has to answer. */
const ANSWER_MS = 5_000;
/** After which a message that could not be taken comes again. */
const AGAIN_MS = 1_000;
/** A request for messages is made anew after this time, and a consumer that is gone is noticed with it. */
const PULL_MS = 5_000;

/**
 * Reads the messages of a stream until `signal` is aborted, and makes the consumer unless it is there. Resolves when what was taken has
 * been acknowledged or given back. Rejects with `FlowError` when the server cannot be reached, refuses something, or is gone: then the
 * caller begins anew.
 */
export async function readStream(consumer: StreamConsumer, reader: StreamReader, signal: AbortSignal): Promise<void> {
  const { target, egress } = reader;
  try {
    const connection = await connectNats(target, egress, CONNECT_MS);
    const close = () => void connection.close();
    try {
      const manager = await connection.jetstreamManager({ timeout: ANSWER_MS, checkAPI: false });
      await ensureConsumer(manager, consumer);
      const source = await connection
        .jetstream({ timeout: ANSWER_MS })
        .consumers.get(consumer.stream, consumer.durable);
      const messages = await source.consume({
        max_messages: consumer.maxInFlight,
        expires: PULL_MS,
        abort_on_missing_resource: true,
      });
      const stop = () => void messages.close();
      signal.addEventListener("abort", stop, { once: true });
      // The driver's iterator does not end with its connection.
      void connection.closed().then(stop);
      try {
        if (signal.aborted) stop();
        reader.onReady();
        await takeAll(messages, consumer.maxInFlight, reader);
      } finally {
        signal.removeEventListener("abort", stop);
      }
      if (!signal.aborted) throw new Error("the connection ended");
      await connection.flush();
    } finally {
      close();
    }
  } catch (error) {
    if (error instanceof FlowError) throw error;
    const what = `Consumer '${consumer.durable}' of stream '${consumer.stream}' at ${describeTarget(target)}`;
    throw new FlowError("UNAVAILABLE", `${what} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}

async function takeAll(messages: AsyncIterable<JsMsg>, max: number, { take }: StreamReader): Promise<void> {
  const running = new Set<Promise<void>>();
  try {
    for await (const message of messages) {
      const one = takeOne(message, take).finally(() => running.delete(one));
      running.add(one);
      if (running.size >= max) await Promise.race(running);
    }
  } finally {
    await Promise.all(running);
  }
}

async function takeOne(message: JsMsg, take: StreamReader["take"]): Promise<void> {
  const { streamSequence: sequence, timestampNanos } = message.info;
  try {
    await take({
      subject: message.subject,
      data: message.data,
      headers: headersOf(message),
      sequence,
      timestampNanos,
      isRedelivered: message.redelivered,
    });
    message.ack();
  } catch {
    message.nak(AGAIN_MS);
  }
}

function headersOf({ headers }: JsMsg): Record<string, string> {
  const known: [string, string][] = (headers?.keys() ?? []).map((name) => [
    name.toLowerCase(),
    headers?.last(name) ?? "",
  ]);
  return Object.fromEntries(known);
}

/** JetStream's code for a consumer that is not there. */
const NO_CONSUMER = 10_014;

async function ensureConsumer({ consumers }: JetStreamManager, wanted: StreamConsumer): Promise<void> {
  const { stream, durable, subject, isOwn, description, deliver, maxInFlight, ackWaitMs } = wanted;
  const settings = {
    max_ack_pending: maxInFlight,
    ack_wait: nanos(ackWaitMs),
    ...(subject !== undefined && { filter_subject: subject }),
  };
  let info: ConsumerInfo;
  try {
    info = await consumers.info(stream, durable);
  } catch (error) {
    if (!(error instanceof NatsError) || error.api_error?.err_code !== NO_CONSUMER) throw error;
    await consumers.add(stream, {
      durable_name: durable,
      description,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: deliver === "new" ? DeliverPolicy.New : DeliverPolicy.All,
      ...settings,
    });
    return;
  }
  const { config } = info;
  if (config.deliver_subject !== undefined) throw new Error("it is a push consumer: name one that is pulled, or none");
  if (config.ack_policy !== AckPolicy.Explicit)
    throw new Error("it does not wait for acknowledgements (ack_policy explicit)");
  const isSame =
    config.max_ack_pending === maxInFlight && config.ack_wait === nanos(ackWaitMs) && config.filter_subject === subject;
  if (isOwn && !isSame) await consumers.update(stream, durable, settings);
}

function reasonOf(error: unknown): string {
  return error instanceof NatsError
    ? (error.api_error?.description ?? (error.message || error.code))
    : messageOf(error);
}
