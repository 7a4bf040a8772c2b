/*
 * How the benchmark talks to a peer's program: it forks it, waits for `{ ready }`, and then sends `{ id, work }` for each
 * workflow that is to be run, answered by `{ id }` or `{ id, error }` once the result is known. A message between two
 * processes costs less than the HTTP request that starts a playbook.
 */

/** Answers requests by `run(work)`; `ready` goes to the benchmark with the first message. */
export function answerRequests(ready, run) {
  process.on("message", ({ id, work }) => {
    run(work).then(
      () => process.send({ id }),
      (error) => process.send({ id, error: String(error?.stack ?? error) }),
    );
  });
  // The benchmark has ended: there is nothing left to measure.
  process.on("disconnect", () => process.exit());
  process.send({ ready });
}
