import { FlowError } from "../../schema/words/errors.ts";
import { Interpreter, type InterpreterOptions } from "./interpreter.ts";

/** An interpreter is replaced after this many tasks, so that what slowly leaks in modules cannot add up. */
const TASKS_PER_INTERPRETER = 1_000;
/** Idle interpreters beyond the warm ones stay this long, which spans the pauses of a parallel loop. */
const SURPLUS_IDLE_MS = 10_000;
/** Warm ones stay this long; the next task after that pays one start. */
const WARM_IDLE_MS = 300_000;

/** What {@link PythonPool} takes. */
export interface PythonPoolOptions extends InterpreterOptions {
  /** Idle interpreters that are kept for long. */
  warmCount: number;
  /** Interpreters at most, busy ones included. More tasks than that wait, first come first served. */
  maxCount: number;
}

interface Waiter {
  resolve(interpreter: Interpreter): void;
  reject(reason: unknown): void;
}

/**
 * Interpreters that are started when needed and used again. Nothing is started before the first use. It holds their processes:
 * {@link PythonPool.close} ends them.
 */
export class PythonPool {
  private readonly options: PythonPoolOptions;
  /** The longest idle first; the one used last is used again, so that the others can be ended. */
  private readonly idle: { interpreter: Interpreter; timer: NodeJS.Timeout }[] = [];
  private readonly all = new Set<Interpreter>();
  private readonly waiters: Waiter[] = [];
  private starting = 0;
  private pythonPath: string;
  private closed = false;

  constructor(options: PythonPoolOptions) {
    this.options = options;
    this.pythonPath = options.pythonPath;
  }

  /**
   * Calls `work` with an interpreter, waiting for one when all are busy. Rejects with the reason of `signal` if that aborts
   * first; then `work` is never called. Throws FlowError `INVALID_SETTING` if no interpreter can be started.
   */
  async use<T>(signal: AbortSignal, work: (interpreter: Interpreter) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.closed) throw new FlowError("CANCELLED", "The python tool is closed: the program is ending.");
    const interpreter = await this.acquire(signal);
    interpreter.ref();
    try {
      signal.throwIfAborted();
      return await work(interpreter);
    } finally {
      this.release(interpreter);
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
    this.release(interpreter);
  }

  /** Every waiter gets an interpreter that becomes free or one that is started, whichever comes first. */
  private startIfNeeded(): void {
    while (!this.closed && this.starting < this.waiters.length && this.all.size + this.starting < this.options.maxCount)
      void this.start();
  }

  private acquire(signal: AbortSignal): Promise<Interpreter> {
    for (let entry = this.idle.pop(); entry !== undefined; entry = this.idle.pop()) {
      clearTimeout(entry.timer);
      if (!entry.interpreter.spent) return Promise.resolve(entry.interpreter);
      this.discard(entry.interpreter);
    }
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.waiters.splice(this.waiters.indexOf(waiter), 1);
        reject(signal.reason);
      };
      const waiter: Waiter = {
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

  private release(interpreter: Interpreter): void {
    if (this.closed || interpreter.spent || interpreter.tasksRun >= TASKS_PER_INTERPRETER) {
      this.discard(interpreter);
      this.startIfNeeded();
      return;
    }
    const waiter = this.waiters.shift();
    if (waiter === undefined) this.rest(interpreter);
    else waiter.resolve(interpreter);
  }

  private rest(interpreter: Interpreter): void {
    interpreter.unref();
    const idleMs = this.idle.length < this.options.warmCount ? WARM_IDLE_MS : SURPLUS_IDLE_MS;
    const end = () => {
      this.idle.splice(this.idle.indexOf(entry), 1);
      this.discard(interpreter);
    };
    const entry = { interpreter, timer: setTimeout(end, idleMs).unref() };
    this.idle.push(entry);
  }

  private discard(interpreter: Interpreter): void {
    this.all.delete(interpreter);
    void interpreter.kill();
  }
}
