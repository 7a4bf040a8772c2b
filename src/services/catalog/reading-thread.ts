import { Worker } from "node:worker_threads";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { DocumentRead } from "./read-document.ts";
import type { RegisteredRead } from "./read-registered.ts";
import type { DocumentRequest } from "./read-requested.ts";

/** How a thread is made. */
export interface ThreadOptions {
  /** What it begins with. */
  file: URL;
  /** What its memory may hold, MiB. */
  threadMb: number;
  /** Longest that one text may take. */
  readMs: number;
}

/** A thread that reads documents, one at a time. It keeps no process alive while it has nothing to read. */
export interface ReadingThread {
  /** Throws `FlowError` UNAVAILABLE where the thread ended, TIMEOUT where it took too long and was ended. It is of no more use then. */
  read(request: DocumentRequest): Promise<DocumentRead & RegisteredRead>;
  isOver(): boolean;
  /** Ends it. A text that it reads fails with UNAVAILABLE. */
  close(): Promise<void>;
}

interface Current {
  resolve(read: DocumentRead & RegisteredRead): void;
  reject(error: FlowError): void;
  timer: NodeJS.Timeout;
}

/** Starts a thread. */
export function openReadingThread({ file, threadMb, readMs }: ThreadOptions): ReadingThread {
  const worker = new Worker(file, {
    // It needs nothing of the environment, which holds secrets.
    env: {},
    name: "documents",
    resourceLimits: { maxOldGenerationSizeMb: threadMb },
  });
  let current: Current | undefined;
  let isOver = false;
  const settle = (): Current | undefined => {
    const settled = current;
    clearTimeout(settled?.timer);
    current = undefined;
    worker.unref();
    return settled;
  };
  const end = async (error: FlowError): Promise<void> => {
    isOver = true;
    settle()?.reject(error);
    await worker.terminate();
  };
  const ended = (why: string) => void end(unread(`the thread that reads large documents ended: ${why}`));
  worker.on("message", (read: DocumentRead & RegisteredRead) => settle()?.resolve(read));
  worker.on("messageerror", (error) => ended(messageOf(error)));
  worker.on("error", (error) => ended(messageOf(error)));
  worker.on("exit", (code) => ended(`exit code ${code}`));
  return {
    isOver: () => isOver,
    read: (request) =>
      new Promise((resolve, reject) => {
        worker.ref();
        const timer = setTimeout(() => void end(tooLong(readMs)), readMs);
        current = { resolve, reject, timer };
        worker.postMessage(request);
      }),
    close: () => end(unread("the server is stopping")),
  };
}

/** The error for a document that could not be read at the moment. */
export function unread(why: string): FlowError {
  return new FlowError("UNAVAILABLE", `The document was not read: ${why}. Try again in a moment`);
}

function tooLong(readMs: number): FlowError {
  const message = `The document was not read: after ${readMs / 1_000} s it was not done. Make it smaller, or split it into sub-playbooks`;
  return new FlowError("TIMEOUT", message);
}
