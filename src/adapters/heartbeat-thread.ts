import { parentPort, workerData } from "node:worker_threads";
import type { HeartbeatNews, HeartbeatOrder, HeartbeatStart } from "./heartbeat.ts";
import { readLedger } from "./ledger.ts";

/*
 * The thread that keeps a worker in the server's pool: registers, sends heartbeats, leaves. It has its own timer and its own
 * connections, and reads what runs from shared memory, so that it goes on while the worker's main thread computes. The main
 * thread hears its answers when it has time: until then nothing is aborted, and leases of what runs are renewed, which is right.
 */

/** Longest that one call may take. */
const CALL_MS = 10_000;
/** Delays between two tries: doubling from 0.2 s, less a random half; never more than the interval. */
const FIRST_MS = 200;

const { url, token, registration, intervalMs, ledger } = workerData as HeartbeatStart;
const { name } = registration;
const orders: HeartbeatOrder[] = [];
let wake = () => {};
let isDraining = false;

parentPort?.on("message", (order: HeartbeatOrder) => {
  if (order === "drain") isDraining = true;
  orders.push(order);
  wake();
});
await live();

async function live(): Promise<void> {
  let next: "register" | "beat" = "register";
  let tries = 0;
  for (;;) {
    // Orders are what to do now: those that came so far are done with the next call.
    if (orders.splice(0).some((order) => order === "leave")) break;
    try {
      next = next === "register" ? await register() : await beat();
      tries = 0;
    } catch (error) {
      tries += 1;
      const doing = next === "register" ? "registering" : "sending the heartbeat";
      tell({ type: "failed", doing, tries, message: error instanceof Error ? told(error) : String(error) });
    }
    const isNow = tries === 0 && next === "register";
    if (!isNow) await pause(tries === 0 ? intervalMs : Math.min(intervalMs, delayMs(tries)));
    if (orders.includes("register")) next = "register";
  }
  await post("deregister", { name }).catch(() => undefined);
  tell({ type: "left" });
  parentPort?.close();
}

async function register(): Promise<"beat"> {
  const { status } = await post("register", registration);
  if (status !== 200) throw refused(status);
  tell({ type: "registered" });
  return "beat";
}

async function beat(): Promise<"beat" | "register"> {
  const running = readLedger(ledger);
  const { status, body } = await post("heartbeat", { name, running, ...(isDraining && { draining: true }) });
  // Not known there: the server's database is another one, or this worker was silent for days.
  if (status === 404) return "register";
  if (status !== 200) throw refused(status);
  const lost = new Set(texts(body, "lost"));
  // With the attempts that were sent: the worker may have claimed one of them anew meanwhile.
  tell({ type: "answer", cancel: texts(body, "cancel"), lost: running.filter((entry) => lost.has(entry.command_id)) });
  return "beat";
}

function refused(status: number): Error {
  const hint = status === 401 || status === 403 ? ": it does not take this worker's token, see FLOW_WORKER_TOKEN" : "";
  return new Error(`the server answered with status ${status}${hint}`);
}

async function post(call: string, body: unknown): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}/api/worker/pool/${call}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
    redirect: "manual",
    signal: AbortSignal.timeout(CALL_MS),
  });
  const text = await response.text();
  return { status: response.status, body: response.status === 200 ? (JSON.parse(text) as unknown) : undefined };
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

function told(error: Error): string {
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

function tell(news: HeartbeatNews): void {
  parentPort?.postMessage(news);
}
