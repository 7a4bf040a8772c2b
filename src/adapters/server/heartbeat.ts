import { Worker } from "node:worker_threads";
import type { Secret } from "../../platform/crypto/secret.ts";
import type { Moment } from "../../ports/clock.ts";
import type { HeartbeatAnswer } from "../../schema/api/workers.ts";
import { messageOf } from "../../schema/words/errors.ts";
import type { RunningEntry } from "./running-table.ts";

/** How a worker makes itself known (decisions, "Worker protocol"). */
export interface Registration {
  name: string;
  capacity: number;
  labels: Readonly<Record<string, string>>;
  /** Kinds of task that it runs. */
  capabilities: readonly string[];
  runtime: { pid: number; hostname: string; version: string; instance: string; isolation?: string };
}

/** What the thread of the heartbeat begins with. */
export interface HeartbeatStart {
  url: string;
  token: string | undefined;
  registration: Registration;
  intervalMs: number;
  /** Of an earlier registration of this process. */
  secret?: string;
  /** Memory of the table of running commands. */
  runningTable: SharedArrayBuffer;
}

/** Messages to the thread. */
export type HeartbeatOrder = "beat" | "register" | "drain" | "leave";

/** What a worker is told to stop. */
export interface HeartbeatStops {
  /** Commands that were cancelled. */
  cancel: string[];
  /** Iterations that were ended by hand, of commands that go on. */
  stopped: NonNullable<HeartbeatAnswer["cancel_iterations"]>;
  /** Claims that are no longer this worker's. */
  lost: RunningEntry[];
}

/** Messages from the thread. */
export type HeartbeatNews =
  | { type: "registered"; sentAt: Moment; leaseMs: number; secret: string | undefined }
  | ({ type: "answer"; sentAt: Moment; leaseMs: number } & HeartbeatStops)
  | { type: "replaced"; message: string }
  | { type: "failed"; doing: string; tries: number; message: string }
  | { type: "left" };

/** What a {@link Heartbeat} needs. */
export interface HeartbeatParts extends Omit<HeartbeatStart, "token" | "secret"> {
  token: Secret | undefined;
  /** The server has registered this worker; called after each registration. */
  onRegistered(): void;
  onAnswer(answer: HeartbeatStops): void;
  /**
   * The server has renewed the leases of running commands, with a call sent at that time. Called after the rest of the answer
   * was processed.
   */
  onRenewed(sentAt: Moment, leaseMs: number): void;
  /** Another process has registered under this name: there are no further heartbeats. */
  onReplaced(message: string): void;
  onFailed(failure: { doing: string; tries: number; message: string }): void;
}

/** A worker's place in the server's pool, kept by a separate thread that no busy tool can starve. */
export interface Heartbeat {
  /** Registers, until the server answers. `isolation` says what runs the code of tasks, for people. */
  start(isolation: string): void;
  /** What the server gave this process when it registered last: claims carry it. */
  secret(): string | undefined;
  /** Sends one now. */
  beat(): void;
  /** Registers anew. */
  register(): void;
  /** Says from now on that the worker claims nothing more. */
  drain(): void;
  /** Leaves the pool: what the worker still holds may be claimed by others at once. Ends the thread, after 5 s at most. */
  leave(): Promise<void>;
}

/** How long leaving may take: a server that is gone finds out by itself. */
const LEAVE_MS = 5_000;
/** How long to wait before a thread that died is replaced. */
const RESTART_MS = 1_000;

/** Makes the heartbeat; it begins with `start`. */
export function createHeartbeat(parts: HeartbeatParts): Heartbeat {
  let thread: Worker | undefined;
  let isLeaving = false;
  let isDraining = false;
  let left = () => {};
  let secret: string | undefined;

  const tell = (order: HeartbeatOrder) => thread?.postMessage(order);
  const hear = (message: HeartbeatNews) => {
    if (message.type === "registered") {
      secret = message.secret;
      parts.onRenewed(message.sentAt, message.leaseMs);
      parts.onRegistered();
    } else if (message.type === "answer") {
      parts.onAnswer(message);
      parts.onRenewed(message.sentAt, message.leaseMs);
    } else if (message.type === "replaced") parts.onReplaced(message.message);
    else if (message.type === "failed") parts.onFailed(message);
    else left();
  };
  let registration = parts.registration;
  const start = () => {
    thread = openThread({ ...parts, registration }, secret);
    thread.on("message", hear);
    thread.on("error", (error) => {
      thread = undefined;
      left();
      parts.onFailed({ doing: "keeping the heartbeat", tries: 1, message: messageOf(error) });
      if (!isLeaving) setTimeout(start, RESTART_MS).unref();
    });
    if (isDraining) tell("drain");
  };
  return {
    start(isolation) {
      registration = { ...registration, runtime: { ...registration.runtime, isolation } };
      start();
    },
    secret: () => secret,
    beat: () => tell("beat"),
    register: () => tell("register"),
    drain() {
      isDraining = true;
      tell("drain");
    },
    async leave() {
      isLeaving = true;
      if (thread === undefined) return;
      await new Promise<void>((resolve) => {
        const limit = setTimeout(resolve, LEAVE_MS);
        left = () => {
          clearTimeout(limit);
          resolve();
        };
        tell("leave");
      });
      await thread?.terminate();
    },
  };
}

function openThread(
  { url, token, registration, intervalMs, runningTable }: HeartbeatParts,
  secret: string | undefined,
): Worker {
  const known = secret === undefined ? {} : { secret };
  const workerData: HeartbeatStart = { url, token: token?.reveal(), registration, intervalMs, runningTable, ...known };
  // A separate file in the bundle too: a thread starts from a file.
  const file = new URL("./heartbeat-thread.js", import.meta.url);
  // Its environment is empty: it needs nothing of it, and it holds secrets.
  return new Worker(file, { workerData, env: {}, name: "heartbeat", resourceLimits: { maxOldGenerationSizeMb: 64 } });
}
