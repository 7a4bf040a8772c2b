/** The channel to the process that started this one as a part of itself. */
export interface ParentChannel {
  /** Aborted when the parent is gone, or wants this process to stop: both close the channel. */
  signal: AbortSignal;
  /** Notifies the parent that this process is ready. */
  ready(): void;
  /** Lets this process end: an open channel would keep it. */
  close(): void;
}

/** The channel; undefined in a process that was started on its own. */
export function openParentChannel(): ParentChannel | undefined {
  if (process.send === undefined) return undefined;
  const gone = new AbortController();
  process.once("disconnect", () => gone.abort(new Error("The process that started this one is gone")));
  // `disconnect` reports a parent that dies while something is sent to it.
  process.on("error", () => undefined);
  return {
    signal: gone.signal,
    ready() {
      if (process.connected) process.send?.(READY);
    },
    close() {
      if (process.connected) process.disconnect();
    },
  };
}

/** What a part says when it does its work. */
export const READY = "ready";
