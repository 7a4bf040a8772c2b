import { DOCUMENT_BYTES_MAX } from "../../language/document/source/text.ts";
import { type Loaded, loadRegistered } from "../../language/load/load.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { inPieces } from "../in-pieces.ts";
import { type DocumentRead, readDocument } from "./read-document.ts";
import { joinPlaybook, type RegisteredRead } from "./read-registered.ts";
import type { DocumentRequest } from "./read-requested.ts";
import { openReadingThread, type ReadingThread, type ThreadOptions, unread } from "./reading-thread.ts";

/** Who wants a document read. */
export interface DocumentCaller {
  /** Of each user one large document is read at a time. Undefined: operators, and the service itself. */
  user?: string;
  /** Aborted when the caller has left: a document that still waits is not read then. */
  signal?: AbortSignal;
}

/** Reads documents without standing in the way of other calls. */
export interface Documents {
  /**
   * What is to be said of a text. Throws `FlowError` where it is a large one: RATE_LIMITED if too many of this user wait,
   * UNAVAILABLE if too many of all do or the thread that reads them ended, TIMEOUT if that takes too long, CANCELLED if the caller
   * has left.
   */
  read(content: string, caller?: DocumentCaller): Promise<DocumentRead>;
  /**
   * A playbook of the catalog as `loadRegistered` reads it, large ones before the documents that wait to be read. Throws
   * UNAVAILABLE and TIMEOUT as {@link read}.
   */
  registered(content: string, file: string): Promise<Loaded>;
  /** Ends the threads. Waiting calls fail with UNAVAILABLE. */
  close(): Promise<void>;
}

/** Longest text that is read at once, in UTF-16 units. The worst of them took 40 ms; of 16 KiB, 150 ms. */
const AT_ONCE_MAX = 4 * 1024;
/** Large documents that are read or wait for it. Each is at most 1 MiB and takes up to some seconds. */
const QUEUE_MAX = 16;
/** Large documents of one user that are read or wait for it. An editor sends one when its author pauses. */
const USER_MAX = 4;
/** Large playbooks of the catalog that do so. More, because runs wait for them: a server that starts again loads all at once. */
const REGISTERED_MAX = 256;

/** A separate file in the bundle too: a thread starts from a file. */
const THREAD_FILE = new URL("./document-thread.js", import.meta.url);
/** Reading 1 MiB takes some 200 MB, and up to three seconds of processor time. */
const THREAD: ThreadOptions = { file: THREAD_FILE, threadMb: 512, readMs: 30_000 };
/** Texts that are read at a time, each in a thread of its own. */
const THREADS = 2;

interface Waiting extends DocumentRequest {
  user: string | undefined;
  resolve(read: DocumentRead & RegisteredRead): void;
  reject(error: unknown): void;
}

/**
 * Reads short texts at once, and longer ones in threads, in the order in which they came. A thread is started when it is first
 * needed, kept, and replaced when it ended. The options are others in tests.
 */
export function createDocuments(options: Partial<ThreadOptions & { threads: number }> = {}): Documents {
  const { threads: threadsMax = THREADS, ...more } = options;
  const waiting: Waiting[] = [];
  const reading = new Set<Waiting>();
  const threads = new Set<ReadingThread>();
  const idle: ReadingThread[] = [];
  let isClosed = false;

  const start = async (one: Waiting) => {
    reading.add(one);
    const thread = takeThread();
    const { content, file } = one;
    try {
      one.resolve(await thread.read({ content, ...defined({ file }) }));
      idle.push(thread);
    } catch (error) {
      threads.delete(thread);
      one.reject(error);
    }
    reading.delete(one);
    next();
  };
  const takeThread = (): ReadingThread => {
    for (let thread = idle.pop(); thread !== undefined; thread = idle.pop()) {
      if (!thread.isOver()) return thread;
      threads.delete(thread);
    }
    const opened = openReadingThread({ ...THREAD, ...more });
    threads.add(opened);
    return opened;
  };
  const next = () => {
    while (reading.size < threadsMax) {
      const one = takeNext(waiting, reading);
      if (one === undefined) return;
      void start(one);
    }
  };
  const inThread = async (request: DocumentRequest, { user, signal }: DocumentCaller) => {
    if (isClosed) throw unread("the server is stopping");
    checkRoom([...waiting, ...reading], request, user);
    return await new Promise<DocumentRead & RegisteredRead>((resolve, reject) => {
      const one: Waiting = { ...request, user, resolve, reject };
      waiting.push(one);
      signal?.addEventListener("abort", () => leave(waiting, one), { once: true });
      next();
    });
  };

  return {
    async read(content, caller = {}) {
      return isLarge(content) ? await inThread({ content }, caller) : readDocument(content);
    },
    async registered(content, file) {
      if (!isLarge(content)) return loadRegistered(content, file);
      const { playbook, diagnostics } = await inThread({ content, file }, {});
      if (playbook === undefined) return { diagnostics };
      return { playbook: await inPieces(joinPlaybook(playbook)), diagnostics };
    },
    async close() {
      isClosed = true;
      for (const { reject } of waiting.splice(0)) reject(unread("the server is stopping"));
      await Promise.all([...threads].map((thread) => thread.close()));
    },
  };
}

/** Removes what is read next: playbooks of the catalog before documents, and of these the first whose user has none with a thread. */
function takeNext(waiting: Waiting[], reading: ReadonlySet<Waiting>): Waiting | undefined {
  const users = new Set([...reading].flatMap(({ user }) => user ?? []));
  const registered = waiting.findIndex(({ file }) => file !== undefined);
  const index = registered >= 0 ? registered : waiting.findIndex(({ user }) => user === undefined || !users.has(user));
  return index < 0 ? undefined : waiting.splice(index, 1)[0];
}

/** Refuses a text for which too many are before it. */
function checkRoom(before: readonly Waiting[], { file }: DocumentRequest, user: string | undefined): void {
  if (user !== undefined && before.filter((one) => one.user === user).length >= USER_MAX) {
    const message = `The document was not read: ${USER_MAX} large documents of this user are before it. Try again in a moment`;
    throw new FlowError("RATE_LIMITED", message, { detail: { retry_after_seconds: 1 } });
  }
  const isRegistered = file !== undefined;
  const max = isRegistered ? REGISTERED_MAX : QUEUE_MAX;
  if (before.filter((one) => (one.file !== undefined) === isRegistered).length < max) return;
  throw unread(`${max} large ${isRegistered ? "playbooks" : "documents"} are before it`);
}

/** A caller who left needs no answer. What a thread has begun is read to its end. */
function leave(waiting: Waiting[], one: Waiting): void {
  const index = waiting.indexOf(one);
  if (index < 0) return;
  waiting.splice(index, 1);
  one.reject(new FlowError("CANCELLED", "The document was not read: its caller has left"));
}

/** What is too long is refused unread, at once. */
function isLarge(content: string): boolean {
  return content.length > AT_ONCE_MAX && content.length <= DOCUMENT_BYTES_MAX;
}
