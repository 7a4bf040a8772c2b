import { FlowError } from "../../schema/words/errors.ts";
import { Interpreter, type InterpreterOptions } from "./interpreter.ts";

/** An interpreter is replaced after this many tasks, so that what slowly leaks in modules cannot add up. */
const TASKS_PER_INTERPRETER = 1_000;
/** Idle interpreters beyond the warm ones stay this long, which spans the pauses of a parallel loop. */
const SURPLUS_IDLE_MS = 10_000;
/** Warm ones stay this long; the next task after that pays one start. */
const WARM_IDLE_MS = 300_000;

/** What {@link createPythonPool} takes. */
export interface PythonPoolOptions extends InterpreterOptions {
  /** Idle interpreters that are kept for long. */
  warmCount: number;
  /** Interpreters at most, busy ones included. More tasks than that wait, first come first served. */
  maxCount: number;
}

/** Interpreters that are started when needed and used again. */
export interface PythonPool {
  /**
   * Calls `work` with an interpreter, waiting for one when all are busy. Rejects with the reason of `signal` if that aborts
   * first; then `work` is never called. Throws FlowError `INVALID_SETTING` if no interpreter can be started.
   */
  use<T>(signal: AbortSignal, work: (interpreter: Interpreter) => Promise<T>): Promise<T>;
  /** Ends every interpreter, busy ones too. */
  close(): Promise<void>;
}

interface Waiter {
  resolve(interpreter: Interpreter): void;
  reject(reason: unknown): void;
}

/** Builds a pool. Nothing is started before the first use. */
export function createPythonPool(options: PythonPoolOptions): PythonPool {
  /** The longest idle first; the one used last is used again, so that the others can be ended. */
  const idle: { interpreter: Interpreter; timer: NodeJS.Timeout }[] = [];
  const all = new Set<Interpreter>();
  const waiters: Waiter[] = [];
  let starting = 0;
  let pythonPath = options.pythonPath;
  let closed = false;

  async function start(): Promise<void> {
    starting++;
    let interpreter: Interpreter;
    try {
      interpreter = await Interpreter.start({ ...options, pythonPath });
    } catch (error) {
      starting--;
      // While others run, a task that waits gets one of them; when nothing runs, nothing would ever serve it.
      if (all.size > 0) return;
      waiters.shift()?.reject(error);
      startIfNeeded();
      return;
    }
    starting--;
    all.add(interpreter);
    // A wrapper (pyenv) finds the real interpreter anew each time: skip it from now on.
    if (interpreter.executable !== "") pythonPath = interpreter.executable;
    release(interpreter);
  }

  /** Every waiter gets an interpreter that becomes free or one that is started, whichever comes first. */
  function startIfNeeded(): void {
    while (!closed && starting < waiters.length && all.size + starting < options.maxCount) void start();
  }

  function acquire(signal: AbortSignal): Promise<Interpreter> {
    for (let entry = idle.pop(); entry !== undefined; entry = idle.pop()) {
      clearTimeout(entry.timer);
      if (!entry.interpreter.spent) return Promise.resolve(entry.interpreter);
      discard(entry.interpreter);
    }
    return new Promise((resolve, reject) => {
      const abort = () => {
        waiters.splice(waiters.indexOf(waiter), 1);
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
      waiters.push(waiter);
      startIfNeeded();
    });
  }

  function release(interpreter: Interpreter): void {
    if (closed || interpreter.spent || interpreter.tasksRun >= TASKS_PER_INTERPRETER) {
      discard(interpreter);
      startIfNeeded();
      return;
    }
    const waiter = waiters.shift();
    if (waiter === undefined) rest(interpreter);
    else waiter.resolve(interpreter);
  }

  function rest(interpreter: Interpreter): void {
    interpreter.unref();
    const idleMs = idle.length < options.warmCount ? WARM_IDLE_MS : SURPLUS_IDLE_MS;
    const entry = { interpreter, timer: setTimeout(end, idleMs).unref() };
    function end(): void {
      idle.splice(idle.indexOf(entry), 1);
      discard(interpreter);
    }
    idle.push(entry);
  }

  function discard(interpreter: Interpreter): void {
    all.delete(interpreter);
    void interpreter.kill();
  }

  return {
    async use(signal, work) {
      signal.throwIfAborted();
      if (closed) throw new FlowError("CANCELLED", "The python tool is closed: the program is ending.");
      const interpreter = await acquire(signal);
      interpreter.ref();
      try {
        signal.throwIfAborted();
        return await work(interpreter);
      } finally {
        release(interpreter);
      }
    },
    async close() {
      closed = true;
      for (const { timer } of idle.splice(0)) clearTimeout(timer);
      const reason = new FlowError("CANCELLED", "The python tool was closed before the task began.");
      for (const waiter of waiters.splice(0)) waiter.reject(reason);
      await Promise.all(Array.from(all, (interpreter) => interpreter.kill()));
      all.clear();
    },
  };
}
