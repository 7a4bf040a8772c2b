import assert from "node:assert/strict";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import type { Page } from "playwright-core";
import { isTest } from "../each-test.ts";
import { ownDatabase } from "../engine/key-ring.ts";
import { type Serving, startServe } from "../service/serve.ts";
import { startBrowser, type TestBrowser } from "./browser.ts";
import { type Look, setLook } from "./looks.ts";

/** Nothing in a page takes this long, also on a busy machine. One wait that is too long fails its own test, as the runner gives a test a minute. */
export const LIMIT_MS = 20_000;

/** A service with a worker. */
interface Service {
  serving: Serving;
  close(): Promise<void>;
}

/** A service with a worker, and a browser in front of it. */
export interface Gui {
  serving: Serving;
  browser: TestBrowser;
  /** Calls the API; throws where it refuses. */
  post(path: string, body: unknown): Promise<Record<string, unknown>>;
  /** A page at an address; when it is closed, the test fails for anything the browser complained of. */
  opened(path: string, look?: Look): Promise<Page>;
  close(): Promise<void>;
}

/** Of the service that test files share. One kind is left that no worker runs: duckdb. */
const SHARED_ENVIRONMENT = { FLOW_WORKER_TOOLS: "noop,http,python,shell,playbook,mcp,artifact" };
// A service and its worker take two seconds of processor time to start: the test files of a process share one.
let shared: Promise<Service> | undefined;
// Here and not at the first use: it is to end with the process's tests, not with those of the first file.
if (isTest) after(async () => (await shared)?.close());

/**
 * The service that all test files of a process share, and a browser. A file that uses it names what it makes as no other does,
 * and finds what others have made in lists that it does not narrow.
 */
export async function startGui(): Promise<Gui> {
  shared ??= startService(SHARED_ENVIRONMENT);
  return guiOf({ ...(await shared), close: () => Promise.resolve() });
}

/** A service of the file's own with more environment, and a browser. It has a database of the server that all share. */
export async function startOwnGui(env: Record<string, string> = {}): Promise<Gui> {
  return guiOf(await startService(env));
}

/** Starts `flow serve --role=all`. Screenshots, which no test runner runs, have the embedded database. */
async function startService(env: Record<string, string>): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), "flow-gui-"));
  await chmod(folder, 0o755);
  const closers: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const closing = { after: (close: () => Promise<unknown>) => closers.push(close) };
  const serving = await startServe(closing as never, folder, { ...(isTest ? await database() : {}), ...env }, [
    "--role",
    "all",
  ]);
  return {
    serving,
    async close() {
      for (const close of closers.reverse()) await close();
    },
  };
}

async function guiOf({ serving, close }: Service): Promise<Gui> {
  const browser = await startBrowser();
  return {
    serving,
    browser,
    post: (path, body) => posted(`${serving.url}${path}`, body),
    opened: (path, look) => openedPage(browser, `${serving.url}${path}`, look),
    async close() {
      await browser.close();
      await close();
    },
  };
}

/**
 * Copied from a template, in a quarter of the time that a server takes for its own. Tools may do what they may with a database of
 * the server's own: reach servers of this machine.
 */
async function database(): Promise<Record<string, string>> {
  // Not at the top: its hook would begin a test run outside of the test runner.
  const { createServedDatabase } = await import("../database/postgres.ts");
  const { url } = await createServedDatabase();
  return { ...ownDatabase(url), FLOW_WORKER_TOOLS: "all", FLOW_HTTP_ALLOW_PRIVATE: "all" };
}

async function posted(address: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  assert.ok(response.ok, JSON.stringify(answer));
  return answer;
}

/** A page at an address; when it is closed, the test fails for anything the browser complained of. */
export async function openedPage(browser: TestBrowser, address: string, look: Look = {}): Promise<Page> {
  const page = await browser.newTab();
  page.setDefaultTimeout(LIMIT_MS);
  await setLook(page, look);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  const close = page.close;
  page.close = async () => {
    const found = [...complaints];
    await close.call(page);
    assert.deepEqual(found, []);
  };
  await page.goto(address);
  return page;
}
