/** One event of a stream of server-sent events. */
export interface SentEvent {
  event: string;
  id: string | undefined;
  data: unknown;
}

/** A stream that a test reads, one event at a time. */
export interface EventReader {
  /** The next event; undefined at the end. Comments are passed over. */
  next(): Promise<SentEvent | undefined>;
  /** All that come, to the end. */
  rest(): Promise<SentEvent[]>;
  /** Leaves, as a client that disconnects. */
  leave(): Promise<void>;
}

/** Reads the events of a response. */
export function readEvents(response: Response): EventReader {
  const reader = response.body?.getReader();
  if (reader === undefined) throw new Error("the response has no body");
  const decoder = new TextDecoder();
  let text = "";
  const next = async (): Promise<SentEvent | undefined> => {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end >= 0) {
        const event = parse(text.slice(0, end));
        text = text.slice(end + 2);
        if (event !== undefined) return event;
        continue;
      }
      const { value, done } = await reader.read();
      if (done) return undefined;
      text += decoder.decode(value, { stream: true });
    }
  };
  return {
    next,
    async rest() {
      const events: SentEvent[] = [];
      for (let event = await next(); event !== undefined; event = await next()) events.push(event);
      return events;
    },
    leave: () => reader.cancel(),
  };
}

function parse(block: string): SentEvent | undefined {
  const fields = new Map(
    block.split("\n").map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trimStart()] as const;
    }),
  );
  const data = fields.get("data");
  // Without data nothing is told: such an event only says from where to go on.
  return data === undefined || data === ""
    ? undefined
    : { event: fields.get("event") ?? "message", id: fields.get("id"), data: JSON.parse(data) };
}
