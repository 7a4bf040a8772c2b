import { Worker } from "node:worker_threads";
import { DOCUMENT_BYTES_MAX } from "../../language/document/source/text.ts";
import { type Loaded, loadRegistered } from "../../language/load/load.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { inPieces } from "../in-pieces.ts";
import { type DocumentRead, readDocument } from "./read-document.ts";
import { joinPlaybook, type RegisteredRead } from "./read-registered.ts";
import type { DocumentRequest } from "./read-requested.ts";

/** Reads documents without standing in the way of other calls. */
export interface Documents {
  /**
   * What is to be said of a text. Throws `FlowError` UNAVAILABLE where it is a large one and too many of them wait, or the thread
   * that reads them ended.
   */
  read(content: string): Promise<DocumentRead>;
  /**
   * A playbook of the catalog as `loadRegistered` reads it, large ones before the documents that wait to be read. Throws as
   * {@link read}.
   */
  registered(content: string, file: string): Promise<Loaded>;
  /** Ends the thread. Waiting calls fail with UNAVAILABLE. */
  close(): Promise<void>;
}

/** Longest text that is read at once, in UTF-16 units: some 100 steps, which take 20 to 40 ms. */
const AT_ONCE_MAX = 16 * 1024;
/** Large documents that are read or wait for it. Each is at most 1 MiB and takes up to some seconds. */
const QUEUE_MAX = 16;
/** Large playbooks of the catalog that do so. More, because runs wait for them: a server that starts again loads all at once. */
const REGISTERED_MAX = 64;
/** Memory of the thread. Reading 1 MiB takes some 200 MB. */
const THREAD_MB = 512;

interface ThreadOptions {
  file?: URL;
  threadMb?: number;
}

interface Waiting extends DocumentRequest {
  resolve(read: DocumentRead & RegisteredRead): void;
  reject(error: FlowError): void;
}

/**
 * Reads short texts at once, and longer ones in a thread: one at a time, in the order in which they came. The thread is started
 * when it is first needed, kept, and replaced when it ended. `file` is what it begins with, `threadMb` what
 * its memory may hold: others in tests.
 */
export function createDocuments({ file = THREAD_FILE, threadMb = THREAD_MB }: ThreadOptions = {}): Documents {
  /** The first one is with the thread. */
  const queue: Waiting[] = [];
  let thread: Worker | undefined;
  let isClosed = false;

  const open = (): Worker => {
    const opened = openThread(file, threadMb, {
      read(read) {
        queue.shift()?.resolve(read);
        next();
      },
      ended(why) {
        if (thread !== opened) return;
        thread = undefined;
        void opened.terminate();
        queue.shift()?.reject(unavailable(`the thread that reads large documents ended: ${why}`));
        next();
      },
    });
    return opened;
  };
  /** Idle, it keeps no process alive. */
  const next = () => {
    const [first] = queue;
    if (first === undefined) {
      thread?.unref();
      return;
    }
    thread ??= open();
    thread.ref();
    const { content, file } = first;
    thread.postMessage({ content, ...defined({ file }) } satisfies DocumentRequest);
  };
  const inThread = async (request: DocumentRequest): Promise<DocumentRead & RegisteredRead> => {
    if (isClosed) throw unavailable("the server is stopping");
    const isRegistered = request.file !== undefined;
    const max = isRegistered ? REGISTERED_MAX : QUEUE_MAX;
    const same = queue.filter(({ file }) => (file !== undefined) === isRegistered).length;
    if (same >= max) throw unavailable(`${max} large ${isRegistered ? "playbooks" : "documents"} are before it`);
    return await new Promise((resolve, reject) => {
      queue.splice(placeFor(isRegistered, queue), 0, { ...request, resolve, reject });
      if (queue.length === 1) next();
    });
  };

  return {
    async read(content) {
      return isLarge(content) ? await inThread({ content }) : readDocument(content);
    },
    async registered(content, file) {
      if (!isLarge(content)) return loadRegistered(content, file);
      const { playbook, diagnostics } = await inThread({ content, file });
      if (playbook === undefined) return { diagnostics };
      return { playbook: await inPieces(joinPlaybook(playbook)), diagnostics };
    },
    async close() {
      isClosed = true;
      const ending = thread;
      thread = undefined;
      for (const { reject } of queue.splice(0)) reject(unavailable("the server is stopping"));
      await ending?.terminate();
    },
  };
}

/** Starts the thread. `ended` may be called more than once. */
function openThread(
  file: URL,
  threadMb: number,
  on: { read(read: DocumentRead & RegisteredRead): void; ended(why: string): void },
): Worker {
  const opened = new Worker(file, {
    // It needs nothing of the environment, which holds secrets.
    env: {},
    name: "documents",
    resourceLimits: { maxOldGenerationSizeMb: threadMb },
  });
  opened.on("message", on.read);
  opened.on("messageerror", (error) => on.ended(messageOf(error)));
  opened.on("error", (error) => on.ended(messageOf(error)));
  opened.on("exit", (code) => on.ended(`exit code ${code}`));
  return opened;
}

/** Playbooks of the catalog go before documents. The first one is with the thread already, whatever it is. */
function placeFor(isRegistered: boolean, queue: readonly Waiting[]): number {
  const place = isRegistered ? queue.findIndex(({ file }, index) => index > 0 && file === undefined) : -1;
  return place === -1 ? queue.length : place;
}

/** What is too long is refused unread, at once. */
function isLarge(content: string): boolean {
  return content.length > AT_ONCE_MAX && content.length <= DOCUMENT_BYTES_MAX;
}

/** A separate file in the bundle too: a thread starts from a file. */
const THREAD_FILE = new URL("./document-thread.js", import.meta.url);

function unavailable(why: string): FlowError {
  return new FlowError("UNAVAILABLE", `The document was not read: ${why}. Try again in a moment`);
}
