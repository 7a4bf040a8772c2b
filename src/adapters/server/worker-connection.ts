import { parseReply, type ServerReply } from "../../schema/routes/answer.ts";
import { CONNECTION_PROTOCOL, MESSAGE_PATHS } from "../../schema/routes/messages.ts";
import { FlowError } from "../../schema/words/errors.ts";
import {
  connectServer,
  headersOf,
  type ServerAddress,
  type ServerCall,
  type ServerConnection,
  secondsOf,
} from "./connection.ts";
import { type ChannelCall, type MessageChannel, openChannel } from "./message-channel.ts";
import { requestUpgrade } from "./request-upgrade.ts";

/** What {@link connectWorker} needs besides the address. */
export interface WorkerConnectionParts extends ServerAddress {
  /** For the log: a worker connection was opened, could not be, or ended. */
  onChange?(change: ConnectionChange): void;
}

/** What became of a worker connection. `retryMs`: after which the next one is tried; its calls go by HTTP until then. */
export type ConnectionChange = { type: "opened" } | { type: "refused" | "ended"; message: string; retryMs: number };

/** Between two tries, after the server or something before it has said that it knows no such connection. */
const UNKNOWN_MS = 60_000;
/** After other failures: doubling from the one to the other. */
const FIRST_MS = 500;
const LONGEST_MS = 30_000;
/** A connection that lasted this long was a good one. */
const STABLE_MS = 10_000;

/**
 * Calls to a server, of which the frequent ones go over one worker connection, and the others by HTTP. While there is no such connection, all
 * go by HTTP: an older server has none, and what stands between may refuse it. It is opened beside the first call, and no call waits
 * for it.
 */
export function connectWorker(parts: WorkerConnectionParts): ServerConnection {
  const byHttp = connectServer(parts);
  const ending = new AbortController();
  let channel: MessageChannel | undefined;
  let isOpening = false;
  let failures = 0;
  let nextTryAt = 0;

  const failed = (type: "refused" | "ended", message: string, isUnknown: boolean) => {
    failures += 1;
    const retryMs = isUnknown ? UNKNOWN_MS : Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10));
    nextTryAt = performance.now() + retryMs;
    if (!ending.signal.aborted) parts.onChange?.({ type, message, retryMs });
  };
  const open = async () => {
    isOpening = true;
    const outcome = await requestUpgrade(parts, CONNECTION_PROTOCOL, ending.signal);
    isOpening = false;
    if ("refused" in outcome) {
      failed("refused", outcome.refused, outcome.isUnknown);
      return;
    }
    const openedAt = performance.now();
    const opened = openChannel({
      ...outcome,
      left: () => {
        // Calls under way are answered. The next connection may lead to another server at once.
        channel = undefined;
        parts.onChange?.({ type: "ended", message: "its server stops", retryMs: 0 });
      },
      ended: (why) => {
        if (channel !== opened) return;
        channel = undefined;
        if (performance.now() - openedAt > STABLE_MS) failures = 0;
        failed("ended", why, false);
      },
    });
    channel = opened;
    parts.onChange?.({ type: "opened" });
  };
  return {
    call(call) {
      const kind = call.method === "POST" ? KINDS.get(call.path) : undefined;
      const { body = "" } = call;
      if (kind === undefined) return byHttp.call(call);
      if (channel === undefined && !isOpening && performance.now() >= nextTryAt) void open();
      return channel?.isReady() === true ? send(channel, kind, { ...call, body }, parts) : byHttp.call(call);
    },
    async close() {
      ending.abort();
      channel?.close();
      await byHttp.close();
    },
  };
}

/** Kinds of messages by the paths of their routes. */
const KINDS: ReadonlyMap<string, number> = new Map(
  Object.entries(MESSAGE_PATHS).map(([kind, path]) => [path, Number(kind)]),
);

async function send(
  channel: MessageChannel,
  kind: number,
  call: ServerCall & Pick<ChannelCall, "body">,
  { url, workerSecret }: WorkerConnectionParts,
): Promise<ServerReply> {
  const { body, timeoutMs, signal } = call;
  const { "content-type": _, ...fields } = headersOf(call, workerSecret?.());
  const given = JSON.stringify(fields);
  try {
    const answer = await channel.call({ kind, fields: given, body, timeoutMs, signal });
    const retryAfterMs = answer.fields.length === 0 ? undefined : retryAfterIn(answer.fields);
    return {
      status: answer.status,
      body: parseReply(answer.body.toString("utf8")),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
  } catch (cause) {
    signal.throwIfAborted();
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new FlowError("SERVER_UNREACHABLE", `The server at ${url} did not answer: ${why}`, { cause });
  }
}

function retryAfterIn(fields: Buffer): number | undefined {
  const value = parseReply(fields.toString("utf8"));
  return typeof value === "object" && value !== null && "retry-after" in value
    ? secondsOf(value["retry-after"])
    : undefined;
}
