import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { type Serving, startServe } from "../service/serve.ts";
import { startBrowser } from "./browser.ts";

/** Nothing in a page takes this long on an idle machine; a busy one is given the time. */
export const LIMIT_MS = 120_000;

/** How a page is looked at. */
export interface Look {
  /** Pixels; default 1280. */
  width?: number;
  /** Default light. */
  scheme?: "light" | "dark";
}

/** A service with a worker, and a browser in front of it: one of each for a test file. */
export interface Gui {
  serving: Serving;
  browser: Browser;
  /** Calls the API; throws where it refuses. */
  post(path: string, body: unknown): Promise<Record<string, unknown>>;
  /** A page at an address; when it is closed, the test fails for anything the browser complained of. */
  opened(path: string, look?: Look): Promise<Page>;
  close(): Promise<void>;
}

/** Starts `flow serve --role=all` with more environment, and a browser. */
export async function startGui(env: Record<string, string> = {}): Promise<Gui> {
  const folder = await mkdtemp(join(tmpdir(), "flow-gui-"));
  await chmod(folder, 0o755);
  const closers: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const closing = { after: (close: () => Promise<unknown>) => closers.push(close) };
  const serving = await startServe(closing as never, folder, env, ["--role", "all"]);
  const browser = await startBrowser();
  closers.push(() => browser.close());
  return {
    serving,
    browser,
    post: (path, body) => posted(`${serving.url}${path}`, body),
    opened: (path, look) => openedPage(browser, `${serving.url}${path}`, look),
    async close() {
      for (const close of closers.reverse()) await close();
    },
  };
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
export async function openedPage(browser: Browser, address: string, look: Look = {}): Promise<Page> {
  const page = await browser.newPage({
    viewport: { width: look.width ?? 1280, height: 800 },
    colorScheme: look.scheme ?? "light",
  });
  page.setDefaultTimeout(LIMIT_MS);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("close", () => assert.deepEqual(complaints, []));
  await page.goto(address);
  return page;
}

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core calls serious or critical of a page as it stands. */
export async function accessibility(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = await page.evaluate<Violation[]>("axe.run().then(({ violations }) => violations)");
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** How everybody's page is looked at. */
export const LOOKS: readonly Look[] = [{ scheme: "light" }, { scheme: "dark" }, { width: 360 }];

/** Nothing serious stands in anybody's way on a page as it stands, and nothing sticks out at its side. */
export async function assertUsable(page: Page): Promise<void> {
  assert.deepEqual(await accessibility(page), []);
  const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  assert.ok(overflow <= 0, `${overflow} px stick out at the side`);
}

/** Opens an address in every look; it can be used in each once `sign` is there. */
export async function assertUsableInEveryLook(
  { opened }: Pick<Gui, "opened">,
  path: string,
  sign: string,
): Promise<void> {
  for (const look of LOOKS) {
    const page = await opened(path, look);
    await page.getByText(sign).first().waitFor();
    await assertUsable(page);
    await page.close();
  }
}

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string }[];
}
