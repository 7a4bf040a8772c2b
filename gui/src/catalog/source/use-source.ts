import { useEffect, useRef, useState } from "react";
import type { Source, SourceFault, SourceRead } from "./read-source.ts";

/** How long to wait after the last key press before a text is read, milliseconds. */
const PAUSE_MS = 120;

/** What was read of a text while it is written. */
export interface SourceState {
  /** The last text that could be read; undefined before the first. */
  source: Source | undefined;
  /** Why the text as it is now cannot be read. */
  fault: SourceFault | undefined;
}

/**
 * Reads a text as it is written, in a worker. One text at a time: of those that are written meanwhile only the last is read. What was read
 * stays while a text cannot be.
 */
export function useSource(text: string): SourceState {
  const [state, setState] = useState<SourceState>({ source: undefined, fault: undefined });
  const reading = useRef<{ worker: Worker; isBusy: boolean; next: string | undefined }>(undefined);
  useEffect(() => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    const own = { worker, isBusy: false, next: undefined as string | undefined };
    reading.current = own;
    worker.addEventListener("message", ({ data }: MessageEvent<SourceRead>) => {
      const { next } = own;
      own.isBusy = next !== undefined;
      own.next = undefined;
      if (next !== undefined) worker.postMessage(next);
      setState(({ source }) =>
        "source" in data ? { source: data.source, fault: undefined } : { source, fault: data.fault },
      );
    });
    worker.addEventListener("error", () =>
      setState(({ source }) => ({ source, fault: { line: 1, why: "This browser could not read it" } })),
    );
    return () => worker.terminate();
  }, []);
  const isFirst = useRef(true);
  useEffect(() => {
    const read = () => {
      const { current } = reading;
      if (current === undefined) return;
      // As the editor counts: its lines end with one character.
      const plain = text.replaceAll(/\r\n?/g, "\n");
      if (current.isBusy) current.next = plain;
      else current.worker.postMessage(plain);
      current.isBusy = true;
    };
    const timer = setTimeout(read, isFirst.current ? 0 : PAUSE_MS);
    isFirst.current = false;
    return () => clearTimeout(timer);
  }, [text]);
  return state;
}
