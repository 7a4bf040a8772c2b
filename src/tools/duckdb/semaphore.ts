/** Lets so many calls run at a time, in the order in which they came. Holds those that wait. */
export class DuckdbTurns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(callsMax: number) {
    this.#free = callsMax;
  }

  /** The result of `call`, when its turn has come. Throws the signal's reason when it is aborted before that. */
  async take<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    try {
      return await call();
    } finally {
      // The turn goes to the next that waits without becoming free between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(begin), 1);
        reject(signal.reason);
      };
      const begin = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#waiting.push(begin);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }
}
