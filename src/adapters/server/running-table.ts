/** Rows of a table: more commands than this wait for sub-playbooks at no sensible worker. */
export const RUNNING_ROWS_MAX = 65_536;
/** A row: the command's id, then its attempt. */
const ROW = 2;

/** A command that runs, under one claim. */
export interface RunningEntry {
  command_id: string;
  attempt: number;
}

/**
 * The running commands, in memory that two threads share: the heartbeat of the second thread stays correct while the first one
 * computes.
 */
export interface RunningTable {
  readonly memory: SharedArrayBuffer;
  /** The row that it stands in; −1 when all are taken: its lease is not renewed then. */
  add(work: { command: { command_id: string }; attempt: number }): number;
  remove(row: number): void;
}

/** An empty table: 1 MiB, of which the system gives only what is written to. */
export function createRunningTable(): RunningTable {
  const memory = new SharedArrayBuffer(RUNNING_ROWS_MAX * ROW * BigInt64Array.BYTES_PER_ELEMENT);
  const cells = new BigInt64Array(memory);
  const free: number[] = [];
  let used = 0;
  return {
    memory,
    add({ command, attempt }) {
      const row = free.pop() ?? (used < RUNNING_ROWS_MAX ? used++ : -1);
      if (row === -1) return row;
      // The id last: a row with an id is complete.
      Atomics.store(cells, row * ROW + 1, BigInt(attempt));
      Atomics.store(cells, row * ROW, BigInt(command.command_id));
      return row;
    },
    remove(row) {
      if (row === -1) return;
      Atomics.store(cells, row * ROW, 0n);
      free.push(row);
    },
  };
}

/** What stands in the memory of a table, read from any thread. */
export function readRunningTable(memory: SharedArrayBuffer): RunningEntry[] {
  const cells = new BigInt64Array(memory);
  const entries: RunningEntry[] = [];
  for (let row = 0; row < RUNNING_ROWS_MAX; row += 1) {
    const id = Atomics.load(cells, row * ROW);
    if (id === 0n) continue;
    const attempt = Atomics.load(cells, row * ROW + 1);
    // Taken by another command between the two reads: that one is read the next time.
    if (Atomics.load(cells, row * ROW) === id) entries.push({ command_id: String(id), attempt: Number(attempt) });
  }
  return entries;
}
