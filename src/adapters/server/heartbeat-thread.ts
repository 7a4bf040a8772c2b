import { parentPort, workerData } from "node:worker_threads";
import type { WORKER_ROUTES } from "../../schema/routes/workers.ts";
import { moment } from "../system-clock.ts";
import type { HeartbeatNews, HeartbeatOrder, HeartbeatStart, HeartbeatStops } from "./heartbeat.ts";
import { type RunningEntry, readRunningTable } from "./running-table.ts";

/**
 * The thread that keeps a worker in the server's pool: registers, sends heartbeats, leaves. It has its own timer and its own
 * connections, and reads from shared memory what runs, so that it goes on while the worker's main thread computes. The main
 * thread processes its answers when it has time: until then nothing is aborted, and leases of running commands are renewed,
 * which is right.
 */

/** Longest that one call may take. */
const CALL_MS = 10_000;
/**
 * How long the server may hold its answer, to report a cancellation at once; it renews the leases before. It allows at most 30
 * s.
 */
const WAIT_MS_MAX = 30_000;
/** Between an answer with changes and the next heartbeat: further cancellations are mostly part of that answer. */
const NEWS_MS = 100;
/** Delays between two tries: doubling from 0.2 s, less a random half; never more than the interval. */
const FIRST_MS = 200;

type Call = "register" | "heartbeat" | "deregister";

/** Of the contracts the types alone: their schemas would be loaded into each thread, for three short answers. */
const PATHS: { readonly [Name in Call]: (typeof WORKER_ROUTES)[Name]["path"] } = {
  register: "/api/worker/pool/register",
  heartbeat: "/api/worker/pool/heartbeat",
  deregister: "/api/worker/pool/deregister",
};

/** The name is another process's by now. */
class Replaced extends Error {}

/** The server's keys have not made this process's secret: it gives another one. A token that it does not take it refuses there too. */
class Unproven extends Error {}

const start = workerData as HeartbeatStart;
const { url, token, registration, runningTable } = start;
const { name } = registration;
const { instance } = registration.runtime;
/** Shorter where leases are: three heartbeats in each. */
let { intervalMs } = start;
/** Of a server that does not say it: the default. */
const LEASE_MS = 120_000;
let leaseMs = LEASE_MS;
const orders: HeartbeatOrder[] = [];
let wake = () => {};
let isDraining = false;
/** What the server gave this process when it registered. */
let { secret } = start;
/** Breaks off a heartbeat whose answer is held: an order is not to wait for it. */
let interrupt = new AbortController();
/** Commands that this worker must stop and still runs, as `command attempt`: they are not requested again. */
let reported = new Set<string>();

parentPort?.on("message", (order: HeartbeatOrder) => {
  if (order === "drain") isDraining = true;
  orders.push(order);
  interrupt.abort();
  wake();
});
await live();

async function live(): Promise<void> {
  let next: "register" | "beat" = "register";
  let tries = 0;
  for (;;) {
    // Orders are what to do now: those that came so far are done with the next call.
    interrupt = new AbortController();
    if (orders.splice(0).some((order) => order === "leave")) break;
    const began = performance.now();
    let hasChanges = false;
    try {
      if (next === "register") {
        next = await register();
        // The first heartbeat follows soon: by its connection the server notices the end of this process.
        hasChanges = true;
      } else ({ next, hasChanges } = await beat(interrupt.signal));
      tries = 0;
    } catch (error) {
      // Broken off for an order: no failure.
      if (orders.length === 0) {
        tries += 1;
        if (error instanceof Unproven) next = "register";
        const doing = next === "register" ? "registering" : "sending the heartbeat";
        if (error instanceof Replaced) {
          postMessage({ type: "replaced", message: error.message });
          break;
        }
        postMessage({
          type: "failed",
          doing,
          tries,
          message: error instanceof Error ? errorText(error) : String(error),
        });
      }
    }
    const isNow = orders.length > 0 || (tries === 0 && next === "register");
    if (!isNow) await pause(pauseMs(tries, hasChanges, performance.now() - began));
    if (orders.includes("register")) next = "register";
  }
  await post("deregister", { name, instance }).catch(() => undefined);
  postMessage({ type: "left" });
  parentPort?.close();
}

async function register(): Promise<"beat"> {
  const sentAt = moment();
  const { status, body } = await post("register", registration);
  if (status !== 200) throw refused(status);
  renewed(body);
  secret = secretIn(body) ?? secret;
  postMessage({ type: "registered", sentAt, leaseMs, secret });
  return "beat";
}

async function beat(signal: AbortSignal): Promise<{ next: "beat" | "register"; hasChanges: boolean }> {
  const all = readRunningTable(runningTable);
  reported = new Set(all.map(keyOf).filter((key) => reported.has(key)));
  const running = all.filter((entry) => !reported.has(keyOf(entry)));
  const waitMs = Math.min(intervalMs, WAIT_MS_MAX);
  const requestBody = { name, instance, running, wait_ms: waitMs, ...(isDraining && { draining: true }) };
  const sentAt = moment();
  const { status, body } = await post(
    "heartbeat",
    requestBody,
    AbortSignal.any([AbortSignal.timeout(CALL_MS + waitMs), signal]),
  );
  // Not registered there: the server's database is another one, or this worker was silent for days.
  if (status === 404) return { next: "register", hasChanges: false };
  if (status === 403) throw new Unproven(refused(status).message);
  if (status === 409) throw new Replaced(messageIn(body) ?? `Another process has registered as '${name}'`);
  if (status !== 200) throw refused(status);
  renewed(body);
  const cancel = texts(body, "cancel");
  const stopped = stoppedIn(body);
  const lostIds = new Set(texts(body, "lost"));
  // With the attempts that were sent: the worker may have claimed one of them anew meanwhile.
  const lost = running.filter((entry) => lostIds.has(entry.command_id));
  postMessage({ type: "answer", cancel, stopped, lost, sentAt, leaseMs });
  const cancelled = new Set(cancel);
  // Read again: a cancelled command may have started since.
  for (const entry of readRunningTable(runningTable)) if (cancelled.has(entry.command_id)) reported.add(keyOf(entry));
  for (const entry of lost) reported.add(keyOf(entry));
  return { next: "beat", hasChanges: cancel.length + stopped.length + lost.length > 0 };
}

function secretIn(body: unknown): string | undefined {
  const text = typeof body === "object" && body !== null && "worker_secret" in body ? body.worker_secret : undefined;
  return typeof text === "string" ? text : undefined;
}

function messageIn(body: unknown): string | undefined {
  const text = typeof body === "object" && body !== null && "error" in body ? body.error : undefined;
  return typeof text === "string" ? text : undefined;
}

function renewed(body: unknown): void {
  const answeredMs =
    typeof body === "object" && body !== null && "lease_ms" in body ? Number(body.lease_ms) : Number.NaN;
  leaseMs = answeredMs > 0 ? answeredMs : LEASE_MS;
  intervalMs = Math.min(start.intervalMs, leaseMs / 3);
}

function keyOf({ command_id, attempt }: RunningEntry): string {
  return `${command_id} ${attempt}`;
}

/** Heartbeats begin an interval apart, however long an answer was held; after news the next one soon listens again. */
function pauseMs(tries: number, hasChanges: boolean, tookMs: number): number {
  if (tries > 0) return Math.min(intervalMs, delayMs(tries));
  return hasChanges ? NEWS_MS : Math.max(0, intervalMs - tookMs);
}

function refused(status: number): Error {
  const hint = status === 401 || status === 403 ? ": it does not take this worker's token, see FLOW_WORKER_TOKEN" : "";
  return new Error(`the server answered with status ${status}${hint}`);
}

async function post(
  call: Call,
  body: unknown,
  signal = AbortSignal.timeout(CALL_MS),
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}${PATHS[call]}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(secret !== undefined && { "x-flow-worker": secret }),
    },
    body: JSON.stringify(body),
    redirect: "manual",
    signal,
  });
  const text = await response.text();
  const isRead = response.status === 200 || response.status === 409;
  return { status: response.status, body: isRead ? (JSON.parse(text) as unknown) : undefined };
}

/** Iterations to stop; none from a server of an older version. */
function stoppedIn(body: unknown): HeartbeatStops["stopped"] {
  const list: unknown = (body as { cancel_iterations?: unknown } | null)?.cancel_iterations;
  return Array.isArray(list) ? list : [];
}

function texts(body: unknown, key: string): string[] {
  const list = typeof body === "object" && body !== null && key in body ? (body as Record<string, unknown>)[key] : [];
  return Array.isArray(list) ? list.map(String) : [];
}

/** Resolves after `ms` milliseconds, or when an order comes. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      wake = () => {};
      resolve();
    };
    if (orders.length > 0) wake();
  });
}

function delayMs(tries: number): number {
  return FIRST_MS * 2 ** Math.min(tries - 1, 20) * (1 - Math.random() / 2);
}

function errorText(error: Error): string {
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

function postMessage(message: HeartbeatNews): void {
  parentPort?.postMessage(message);
}
