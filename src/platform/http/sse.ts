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
  const draft: Draft = { event: "", data: [], length: 0 };
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    const messages: ServerSentEvent[] = [];
    for (const line of lines) {
      const message = takeLine(draft, line.endsWith("\r") ? line.slice(0, -1) : line);
      if (message !== undefined) messages.push(message);
    }
    if (rest.length + draft.length > MESSAGE_LENGTH_MAX) {
      throw new FlowError("SERVER_UNREACHABLE", `The server sent a message of more than ${MESSAGE_LENGTH_MAX} bytes`);
    }
    yield messages;
  }
}

interface Draft {
  event: string;
  data: string[];
  length: number;
}

/** An empty line ends a message; it gives the message when there is one. */
function takeLine(draft: Draft, line: string): ServerSentEvent | undefined {
  if (line === "") {
    const message = { event: draft.event === "" ? "message" : draft.event, data: draft.data.join("\n") };
    const isEmpty = draft.data.length === 0;
    Object.assign(draft, { event: "", data: [], length: 0 });
    return isEmpty ? undefined : message;
  }
  const colon = line.indexOf(":");
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (field === "event") draft.event = value;
  if (field === "data") {
    draft.data.push(value);
    draft.length += value.length;
  }
  return undefined;
}
