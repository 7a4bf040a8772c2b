/** Rows of a ledger: more commands than this wait for sub-playbooks at no sensible worker. */
export const LEDGER_ROWS = 65_536;
/** A row: the command's id, then its attempt. */
const ROW = 2;

/** A command that runs, under one claim. */
export interface LedgerEntry {
  command_id: string;
  attempt: number;
}

/**
 * What runs here, in memory that two threads share: so the heartbeat of the second thread tells the truth also while the first
 * one computes and answers nobody.
 */
export interface Ledger {
  readonly memory: SharedArrayBuffer;
  /** The row that it stands in; −1 when all are taken: its lease is not renewed then. */
  add(work: { command: { command_id: string }; attempt: number }): number;
  remove(row: number): void;
}

/** An empty ledger: 1 MiB, of which the system gives only what is written to. */
export function createLedger(): Ledger {
  const memory = new SharedArrayBuffer(LEDGER_ROWS * ROW * BigInt64Array.BYTES_PER_ELEMENT);
  const cells = new BigInt64Array(memory);
  const free: number[] = [];
  let used = 0;
  return {
    memory,
    add({ command, attempt }) {
      const row = free.pop() ?? (used < LEDGER_ROWS ? used++ : -1);
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

/** What stands in the memory of a ledger, read from any thread. */
export function readLedger(memory: SharedArrayBuffer): LedgerEntry[] {
  const cells = new BigInt64Array(memory);
  const entries: LedgerEntry[] = [];
  for (let row = 0; row < LEDGER_ROWS; row += 1) {
    const id = Atomics.load(cells, row * ROW);
    if (id === 0n) continue;
    const attempt = Atomics.load(cells, row * ROW + 1);
    // Taken by another command between the two reads: that one is read the next time.
    if (Atomics.load(cells, row * ROW) === id) entries.push({ command_id: String(id), attempt: Number(attempt) });
  }
  return entries;
}
