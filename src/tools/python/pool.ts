import { FlowError } from "../../schema/words/errors.ts";
import { Interpreter, type InterpreterOptions } from "./interpreter.ts";

/**
 * An interpreter is replaced after this many tasks, so that what slowly leaks in modules cannot add up. One that visibly grows is
 * replaced earlier (`harness/isolation.py`). A start costs 100 to 150 ms of CPU: after each thousandth task it would be as much for
 * a task as running a small one.
 */
const TASKS_PER_INTERPRETER = 10_000;
/** Idle interpreters beyond the warm ones stay this long, which spans the pauses of a parallel loop. */
const SURPLUS_IDLE_MS = 10_000;
/** Warm ones stay this long; the next task after that pays one start. */
const WARM_IDLE_MS = 300_000;
/**
 * A task that waited longer than this is not overtaken by later tasks of a domain that has an interpreter. It spans two starts:
 * changing over more often would spend more time on starts than on tasks.
 */
const OVERTAKEN_MS = 200;

/** What {@link PythonPool} takes. */
export interface PythonPoolOptions extends InterpreterOptions {
  /** Idle interpreters that are kept for long, the fresh one included. */
  warmCount: number;
  /** Interpreters at most, busy ones included. More tasks than that wait, first come first served. */
  maxCount: number;
  /** Whether a fresh one stands ready for the next trust domain; worth its memory where there are many. */
  keepsSpare: boolean;
}

interface Idle {
  interpreter: Interpreter;
  /** Whose code it has run; undefined: it is fresh. */
  domain: string | undefined;
  timer: NodeJS.Timeout;
}

interface Waiter {
  domain: string;
  since: number;
  resolve(interpreter: Interpreter): void;
  reject(reason: unknown): void;
}

/**
 * Interpreters that are started when needed and used again, each by one trust domain only: code can leave hooks behind that
 * read what later code is given. As long as there is room, a fresh one stands ready for the next domain. Nothing is started
 * before the first use. It holds processes: {@link close} ends them.
 */
export class PythonPool {
  /** The longest idle first; the one used last is used again, so that the others can be ended. */
  private readonly idle: Idle[] = [];
  private readonly all = new Set<Interpreter>();
  private readonly waiters: Waiter[] = [];
  private starting = 0;
  private closed = false;
  private pythonPath: string;
  private readonly options: PythonPoolOptions;

  constructor(options: PythonPoolOptions) {
    this.options = options;
    this.pythonPath = options.pythonPath;
  }

  /**
   * Gives `work` an interpreter of its own that has run code of `domain` only, waiting for one when all are busy. Rejects with
   * the reason of `signal` when that is aborted before; then `work` is never called. Throws FlowError `INVALID_SETTING` when
   * none can be started.
   */
  async use<T>(domain: string, signal: AbortSignal, work: (interpreter: Interpreter) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.closed) throw new FlowError("CANCELLED", "The python tool is closed: the program is ending.");
    const interpreter = this.takeIdle(domain) ?? (await this.wait(domain, signal));
    interpreter.ref();
    try {
      signal.throwIfAborted();
      return await work(interpreter);
    } finally {
      this.release(interpreter, domain);
    }
  }

  /** Ends every interpreter, busy ones too. */
  async close(): Promise<void> {
    this.closed = true;
    for (const { timer } of this.idle.splice(0)) clearTimeout(timer);
    const reason = new FlowError("CANCELLED", "The python tool was closed before the task began.");
    for (const waiter of this.waiters.splice(0)) waiter.reject(reason);
    await Promise.all(Array.from(this.all, (interpreter) => interpreter.kill()));
    this.all.clear();
  }

  /** One that the domain has used, the last one first; else a fresh one. */
  private takeIdle(domain: string): Interpreter | undefined {
    for (const wanted of [domain, undefined]) {
      for (;;) {
        const at = this.idle.findLastIndex((entry) => entry.domain === wanted);
        if (at < 0) break;
        const [{ interpreter, timer }] = this.idle.splice(at, 1) as [Idle];
        clearTimeout(timer);
        if (!interpreter.spent) {
          if (wanted === undefined) this.startSpare();
          return interpreter;
        }
        this.discard(interpreter);
      }
    }
    return undefined;
  }

  private wait(domain: string, signal: AbortSignal): Promise<Interpreter> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.waiters.splice(this.waiters.indexOf(waiter), 1);
        reject(signal.reason);
      };
      const waiter: Waiter = {
        domain,
        since: performance.now(),
        resolve(interpreter) {
          signal.removeEventListener("abort", abort);
          resolve(interpreter);
        },
        reject(reason) {
          signal.removeEventListener("abort", abort);
          reject(reason);
        },
      };
      signal.addEventListener("abort", abort, { once: true });
      this.waiters.push(waiter);
      this.startIfNeeded();
    });
  }

  /** Every waiter is served by an interpreter that becomes free or by one that is started, whichever is first. */
  private startIfNeeded(): void {
    while (!this.closed && this.starting < this.waiters.length && this.makeRoom()) void this.start();
  }

  /** Whether one more may be started; ends one that is idle, and of no use to those who wait, where that makes the room. */
  private makeRoom(): boolean {
    if (this.all.size + this.starting < this.options.maxCount) return true;
    const [oldest] = this.idle;
    if (oldest === undefined) return false;
    this.idle.shift();
    clearTimeout(oldest.timer);
    this.discard(oldest.interpreter);
    return true;
  }

  /** Starts a fresh one for the next domain, where that pushes nothing out. */
  private startSpare(): void {
    const isFull = this.all.size + this.starting >= this.options.maxCount;
    if (this.closed || isFull || this.starting > this.waiters.length || !this.options.keepsSpare) return;
    if (!this.idle.some((entry) => entry.domain === undefined)) void this.start();
  }

  private async start(): Promise<void> {
    this.starting++;
    let interpreter: Interpreter;
    try {
      interpreter = await Interpreter.start({ ...this.options, pythonPath: this.pythonPath });
    } catch (error) {
      this.starting--;
      // While others run, a task that waits gets one of them; when nothing runs, nothing would ever serve it.
      if (this.all.size > 0) return;
      this.waiters.shift()?.reject(error);
      this.startIfNeeded();
      return;
    }
    this.starting--;
    this.all.add(interpreter);
    // A wrapper (pyenv) finds the real interpreter anew each time: skip it from now on.
    if (interpreter.executable !== "") this.pythonPath = interpreter.executable;
    this.release(interpreter, undefined);
  }

  private release(interpreter: Interpreter, domain: string | undefined): void {
    if (this.closed || interpreter.spent || interpreter.tasksRun >= TASKS_PER_INTERPRETER) {
      this.discard(interpreter);
      this.startIfNeeded();
      return;
    }
    if (this.waiters.length === 0) {
      this.rest(interpreter, domain);
      return;
    }
    const waiter = this.takeWaiter(domain);
    if (waiter === undefined) {
      this.discard(interpreter);
      this.startIfNeeded();
      return;
    }
    waiter.resolve(interpreter);
    if (domain === undefined) this.startSpare();
  }

  /** The next waiter for an interpreter of the domain; undefined if all wait for other domains, or the first has waited too long. */
  private takeWaiter(domain: string | undefined): Waiter | undefined {
    const [first] = this.waiters;
    if (first === undefined) return undefined;
    if (domain === undefined || first.domain === domain) return this.waiters.shift();
    if (performance.now() - first.since >= OVERTAKEN_MS) return undefined;
    const at = this.waiters.findIndex((waiter) => waiter.domain === domain);
    return at < 0 ? undefined : this.waiters.splice(at, 1)[0];
  }

  private rest(interpreter: Interpreter, domain: string | undefined): void {
    interpreter.unref();
    const idleMs = this.idle.length < this.options.warmCount ? WARM_IDLE_MS : SURPLUS_IDLE_MS;
    const end = () => {
      this.idle.splice(this.idle.indexOf(entry), 1);
      this.discard(interpreter);
    };
    const entry: Idle = { interpreter, domain, timer: setTimeout(end, idleMs).unref() };
    this.idle.push(entry);
  }

  private discard(interpreter: Interpreter): void {
    this.all.delete(interpreter);
    void interpreter.kill();
  }
}
