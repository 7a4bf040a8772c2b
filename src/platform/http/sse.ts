import { createParser } from "eventsource-parser";
import { FlowError } from "../../schema/words/errors.ts";

/** One message of a stream of server-sent events. */
export interface ServerSentEvent {
  /** `message` unless the server names it. */
  event: string;
  data: string;
}

/** Longest message that is read, in characters. An event holds 64 KiB inline at most, a handful of them by its fields. */
const MESSAGE_LENGTH_MAX = 16 * 1024 * 1024;

/**
 * The messages within the bytes of a stream, as many at a time as a chunk of it completes: none for a comment, which keeps
 * the connection alive. What a broken connection leaves half is dropped. Throws `FlowError` SERVER_UNREACHABLE for a message
 * that has no end.
 */
export async function* readMessages(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent[]> {
  const decoder = new TextDecoder();
  let messages: ServerSentEvent[] = [];
  const parser = createParser({
    maxBufferSize: MESSAGE_LENGTH_MAX,
    onEvent: ({ event = "message", data }) => messages.push({ event, data }),
    // Unknown fields are ignored, as the HTML standard has it.
    onError: ({ type }) => {
      if (type !== "max-buffer-size-exceeded") return;
      throw new FlowError("SERVER_UNREACHABLE", `The server sent a message of more than ${MESSAGE_LENGTH_MAX} bytes`);
    },
  });
  for await (const chunk of chunks) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield messages;
    messages = [];
  }
}
