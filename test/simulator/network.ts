import type { ServerCall, ServerConnection } from "../../src/adapters/server/connection.ts";
import type { ServerReply } from "../../src/schema/routes/answer.ts";
import { FlowError } from "../../src/schema/words/errors.ts";
import type { Process, World } from "./process.ts";

/** A process that answers calls while it lives. */
export interface Answering {
  isUp(): boolean;
  /** `signal` aborts when the caller has gone. Never settles when the server dies over it: `onDeath` tells. */
  serve(call: ServerCall, signal: AbortSignal): Promise<ServerReply>;
  onDeath(call: () => void): () => void;
}

/** Longer than any call of ours waits by itself: what real connections allow, less 28 s in which nothing happens here. */
const PATIENCE_LESS_MS = 28_000;

/** Made once: the stack of an error costs more than a step of a run. */
const GONE = new Error("The caller has gone");

/**
 * Calls of one process to any of the servers, as a load balancer gives them one. Calls take time, are lost, doubled, and
 * overtake each other, and so do their answers.
 */
export function connect(world: World, asker: Process, servers: readonly Answering[]): ServerConnection {
  const { clock, random, faults } = world;
  const latency = () => (faults.happens("delayed") ? random.between(500, 8_000) : random.between(1, 20));

  /** One copy of a call on its way. */
  const send = (call: ServerCall, gone: AbortSignal, answered: (reply: ServerReply | undefined) => void) => {
    if (faults.happens("lost")) return;
    clock.after(latency(), () => {
      const server = random.pick(servers);
      if (!server.isUp()) return void clock.after(latency(), () => answered(undefined));
      const stopWatching = server.onDeath(() => clock.after(latency(), () => answered(undefined)));
      server.serve(call, gone).then(
        (reply) => {
          stopWatching();
          if (!faults.happens("lost")) clock.after(latency(), () => answered(reply));
        },
        () => undefined,
      );
    });
  };

  return {
    async call(call) {
      await asker.gate();
      const leave = new AbortController();
      const { signal } = call;
      const reply = await new Promise<ServerReply | undefined>((resolve, reject) => {
        const stop = () => {
          finish();
          reject(signal.reason);
        };
        const finish = () => {
          takeBack();
          signal.removeEventListener("abort", stop);
          forget();
          clock.after(latency(), () => leave.abort(GONE));
        };
        const answered = (answer: ServerReply | undefined) => {
          finish();
          resolve(answer);
        };
        const takeBack = clock.after(Math.max(1_500, call.timeoutMs - PATIENCE_LESS_MS), () => answered(undefined));
        const forget = asker.onDeath(() => clock.after(latency(), () => leave.abort(GONE)));
        if (signal.aborted) return stop();
        signal.addEventListener("abort", stop, { once: true });
        send(call, leave.signal, answered);
        if (faults.happens("doubled")) send(call, leave.signal, answered);
      });
      await asker.gate();
      if (reply === undefined) throw new FlowError("SERVER_UNREACHABLE", "There was no answer");
      return reply;
    },
    close: () => Promise.resolve(),
  };
}
