/** A process that has registered under a worker's name. */
export interface WorkerProcess {
  name: string;
  instance: string;
}

/** Notices that the process of a worker is gone: the connection of its held heartbeat breaks off, and no other heartbeat follows. */
export interface BrokenOff {
  /** A heartbeat of this process came. */
  came(worker: WorkerProcess): void;
  /** The client has left while its heartbeat was held. */
  left(worker: WorkerProcess): void;
}

/** A live worker tries again after 0.2 s, here or at another server, and once more after each second or two. */
export const GONE_MS = 5_000;

/** `note` is called when no heartbeat has followed for `goneMs`. */
export function createBrokenOff(
  note: (worker: WorkerProcess) => Promise<unknown>,
  onFault: (error: unknown) => void,
  goneMs = GONE_MS,
): BrokenOff {
  const waiting = new Map<string, NodeJS.Timeout>();
  const end = (key: string) => {
    clearTimeout(waiting.get(key));
    waiting.delete(key);
  };
  return {
    came: ({ name, instance }) => end(`${name} ${instance}`),
    left(worker) {
      const key = `${worker.name} ${worker.instance}`;
      end(key);
      const timer = setTimeout(() => {
        waiting.delete(key);
        note(worker).catch(onFault);
      }, goneMs);
      waiting.set(key, timer.unref());
    },
  };
}
