/** What of a `Request` the routes of calls by message look at. Its headers are those that the connection was opened with, and its fields. */
export interface MessageParts {
  /** Of the route; the method is `POST`. */
  path: string;
  body: Buffer;
  /** Longer than the body where the message was too long to be kept. */
  bytes: number;
  /** Header by its name in small letters. */
  header(name: string): string | undefined;
  /** Aborted when the worker does not wait for the answer any more. */
  signal(): AbortSignal;
}

/**
 * A call that came as a message of a worker connection, in the form in which routes take requests. Not a `Request` of the platform:
 * making one, with its headers and its stream, costs more than all else that a connection does for a call.
 */
export class MessageRequest {
  readonly method = "POST";
  readonly url: string;
  readonly body = null;
  readonly bytes: Buffer;
  readonly headers: { get(name: string): string | null };
  readonly #parts: MessageParts;

  constructor(parts: MessageParts) {
    this.#parts = parts;
    this.url = `http://localhost${parts.path}`;
    this.bytes = parts.body;
    this.headers = {
      get: (name) => (name === "content-length" ? String(parts.bytes) : (parts.header(name.toLowerCase()) ?? null)),
    };
  }

  get signal(): AbortSignal {
    return this.#parts.signal();
  }
}

/** Where the answer to a call by message is put, as text, instead of into a `Response` that would be read again. */
export class MessageSink {
  #text: string | undefined;

  /** Takes the answer; what is returned stands for it on the way through the middleware, with its status. */
  json(answer: object, status: number): Response {
    this.#text = JSON.stringify(answer);
    return stand(status);
  }

  /** The text of the answer: of `response` itself, where it is another one than {@link json} gave, such as an error's. */
  async textOf(response: Response): Promise<string> {
    return this.#text !== undefined && response === stand(response.status) ? this.#text : await response.text();
  }
}

const stands = new Map<number, Response>();

/** One for each status: it says nothing else. */
function stand(status: number): Response {
  const known = stands.get(status);
  if (known !== undefined) return known;
  const made = new Response(null, { status });
  stands.set(status, made);
  return made;
}
