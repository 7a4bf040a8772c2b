import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { ownDatabase } from "../engine/key-ring.ts";
import { type Serving, startServe } from "../service/serve.ts";
import { isTest, startBrowser, type TestBrowser } from "./browser.ts";

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
  browser: TestBrowser;
  /** Calls the API; throws where it refuses. */
  post(path: string, body: unknown): Promise<Record<string, unknown>>;
  /** A page at an address; when it is closed, the test fails for anything the browser complained of. */
  opened(path: string, look?: Look): Promise<Page>;
  close(): Promise<void>;
}

/**
 * Starts `flow serve --role=all` with more environment, and a browser. In a test file it has a database of the server that all
 * share, unless the service is to have one of its own; screenshots always do.
 */
export async function startGui(env: Record<string, string> = {}, hasOwnDatabase = !isTest): Promise<Gui> {
  const folder = await mkdtemp(join(tmpdir(), "flow-gui-"));
  await chmod(folder, 0o755);
  const closers: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const closing = { after: (close: () => Promise<unknown>) => closers.push(close) };
  const serving = await startServe(closing as never, folder, { ...(hasOwnDatabase ? {} : await database()), ...env }, [
    "--role",
    "all",
  ]);
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

/** Rules of axe-core that colours decide. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/** What axe-core calls serious or critical of a page as it stands; `rules`: only by these. */
export async function accessibility(page: Page, rules?: readonly string[]): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(axe);
  const options = rules === undefined ? {} : { runOnly: { type: "rule", values: rules } };
  const run = `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations)`;
  const found = await page.evaluate<Violation[]>(run);
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** How everybody's page is looked at. */
export const LOOKS: readonly Look[] = [{ scheme: "light" }, { scheme: "dark" }, { width: 360 }];

/** The page as it stands has no serious accessibility violation, and nothing sticks out at its side. */
export async function assertUsable(page: Page, rules?: readonly string[]): Promise<void> {
  assert.deepEqual(await accessibility(page, rules), []);
  const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  assert.ok(overflow <= 0, `${overflow} px stick out at the side`);
}

/** Shows an open page in another look. Resolves when it is drawn so. */
export async function changeLook(page: Page, { width = 1280, scheme = "light" }: Look): Promise<void> {
  await page.setViewportSize({ width, height: 800 });
  await page.emulateMedia({ colorScheme: scheme });
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
}

/** Opens an address and looks at it in every way; it can be used in each once `sign` is there. */
export async function assertUsableInEveryLook(
  { opened }: Pick<Gui, "opened">,
  path: string,
  sign: string,
): Promise<void> {
  const page = await opened(path);
  for (const look of LOOKS) {
    await changeLook(page, look);
    // A graph is fitted to the page when it is opened; what is out of sight is not drawn.
    if (look.width !== undefined && path.includes("tab=graph")) await page.reload();
    await page.getByText(sign).first().waitFor();
    // In the dark the page is the same but for its colours.
    await assertUsable(page, look.scheme === "dark" ? COLOUR_RULES : undefined);
  }
  await page.close();
}

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string }[];
}
