import { FlowError } from "../../schema/words/errors.ts";

/** Stops one part; called once at most. */
export type Stop = () => Promise<void> | void;

/** The parts of a process, stopped in the reverse of the order in which they were started. */
export interface Lifecycle {
  /** A part that runs now and is to be stopped in its turn; `limitMs` where it may take longer than the others. */
  add(name: string, stop: Stop, limitMs?: number): void;
  /**
   * Stops everything. Safe to call twice, and while another call is under way: all of them wait for the same end. A part
   * that fails to stop, or takes longer than the limit, does not keep the others running; the failures are thrown at the
   * end as one `FlowError` INTERNAL.
   */
  stop(): Promise<void>;
}

/** Default limit for one part: long enough for a request under way, short enough for a container's 30 s of grace. */
const PART_STOP_MS = 10_000;

/** An empty lifecycle. `limitMs` bounds the stopping of each part. */
export function createLifecycle(limitMs: number = PART_STOP_MS): Lifecycle {
  const parts: Part[] = [];
  let stopping: Promise<void> | undefined;
  return {
    add(name, stop, partLimitMs = limitMs) {
      if (stopping !== undefined) throw new FlowError("INTERNAL", `${name} was started while everything was stopping`);
      parts.push({ name, stop, limitMs: partLimitMs });
    },
    stop() {
      stopping ??= stopAll(parts);
      return stopping;
    },
  };
}

interface Part {
  name: string;
  stop: Stop;
  limitMs: number;
}

async function stopAll(parts: readonly Part[]): Promise<void> {
  const failures: unknown[] = [];
  for (const { name, stop, limitMs } of parts.toReversed()) {
    try {
      await within(limitMs, name, stop);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length === 0) return;
  const cause = failures.length === 1 ? failures[0] : new AggregateError(failures);
  const messages = failures.map((failure) => (failure instanceof Error ? failure.message : String(failure)));
  throw new FlowError("INTERNAL", `not everything stopped cleanly: ${messages.join("; ")}`, { cause });
}

async function within(limitMs: number, name: string, stop: Stop): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name} did not stop within ${limitMs} ms`)), limitMs);
  });
  try {
    await Promise.race([stop(), late]);
  } finally {
    clearTimeout(timer);
  }
}
