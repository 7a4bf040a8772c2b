import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { ownDatabase } from "../../test/support/engine/key-ring.ts";
import { startBrowser, type TestBrowser } from "../../test/support/page/browser.ts";
import { startServe } from "../../test/support/service/serve.ts";
import { startBenchPostgres } from "../candidates/postgres.ts";
import type { Measurement } from "../report/measurement.ts";
import { type Filled, fillService, type Sizes } from "./fill.ts";
import { heapOf, observe, type Vitals, vitalsOf } from "./vitals.ts";

/** What is measured by default: the sizes of the goals for the page. */
const FULL: Sizes = { executions: 50_000, iterations: 10_000, turns: 18 };
const QUICK: Sizes = { executions: 5_000, iterations: 1_000, turns: 2 };
/** How long the page of a running execution stays open while its heap is watched, milliseconds. */
const LIVE_MS = { full: 600_000, quick: 60_000 };
/** The heap is read for the first time when the page has been live for a while: by then all of its code has run. */
const SETTLED_MS = 15_000;
/** Nothing on a page may take this long. */
const LIMIT_MS = 60_000;

const TARGETS = { lcpMs: 800, interactionMs: 100, shift: 0.01, kilobytes: 150, growth: 1.2 };

/** A page, how it is seen that it is there, and what a user does on it, each a click or a key. */
interface Visit {
  name: string;
  path(filled: Filled): string;
  isThere(page: Page): Promise<unknown>;
  acts: readonly ((page: Page) => Promise<unknown>)[];
}

const view = (page: Page, name: string) =>
  page.getByRole("navigation", { name: "Views" }).getByRole("link", { name, exact: true });
const rows = (page: Page) => page.getByRole("treegrid", { name: "Steps" }).getByRole("row");

const VISITS: readonly Visit[] = [
  {
    name: "home",
    path: () => "/",
    isThere: (page) => page.locator('[data-part="needs"]').waitFor(),
    acts: [
      (page) => page.keyboard.press("Control+k"),
      (page) => page.keyboard.type("page"),
      (page) => page.keyboard.press("Escape"),
    ],
  },
  {
    name: "executions",
    path: () => "/executions",
    isThere: (page) => page.locator("tr[data-row]").first().waitFor(),
    acts: [
      (page) => page.getByRole("button", { name: /^completed/i }).click(),
      (page) => page.getByLabel("Search").fill("page-loop"),
      (page) => page.getByLabel("Search").press("Enter"),
    ],
  },
  {
    name: "a loop's run",
    path: ({ loop }) => `/executions/${loop}`,
    isThere: (page) => rows(page).first().waitFor(),
    acts: [
      (page) => page.getByRole("button", { name: "Unfold work" }).click(),
      (page) => view(page, "Graph").click(),
      (page) => view(page, "Data").click(),
      (page) => view(page, "Trace").click(),
    ],
  },
  {
    name: "a long run",
    path: ({ long }) => `/executions/${long}`,
    isThere: (page) => rows(page).first().waitFor(),
    acts: [
      (page) => view(page, "Events").click(),
      (page) => page.getByRole("button", { name: "To the end" }).click(),
      (page) => view(page, "Log").click(),
      (page) => view(page, "Trace").click(),
    ],
  },
];

/**
 * The page at the sizes of its goals, in a real browser in front of a real service: when the largest part of it is drawn, how far things
 * jump, how long the page takes to answer what a user does, how much is loaded first, and whether its heap grows while an execution runs.
 */
export async function benchPage(isQuick: boolean, log: (line: string) => void): Promise<Measurement[]> {
  const postgres = await startBenchPostgres();
  const folder = await mkdtemp(join(tmpdir(), "flow-bench-page-"));
  const closers: (() => Promise<unknown>)[] = [
    () => postgres.stop(),
    () => rm(folder, { recursive: true, force: true }),
  ];
  const closing = { after: (close: () => Promise<unknown>) => closers.push(close) };
  try {
    const url = await postgres.createDatabase("page");
    const serving = await startServe(closing as never, folder, ownDatabase(url), ["--role", "all"]);
    log("filling the service …");
    const filled = await fillService({ url: serving.url, databaseUrl: url }, isQuick ? QUICK : FULL);
    log(`the long run has ${filled.events.toLocaleString("en-US")} events`);
    const browser = await startBrowser();
    closers.push(() => browser.close());
    const measured = await firstLoad(browser, serving.url);
    for (const visit of VISITS) {
      log(`  ${visit.name}`);
      measured.push(...figuresOf(visit.name, await visited(browser, serving.url, filled, visit)));
    }
    log("  a live page");
    const liveMs = isQuick ? LIVE_MS.quick : LIVE_MS.full;
    measured.push(...(await liveHeap(browser, `${serving.url}/executions/${filled.live}`, liveMs)));
    return measured;
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/** What a browser that has nothing of the page yet gets for home, compressed. Text is drawn before its font is there. */
async function firstLoad(browser: TestBrowser, url: string): Promise<Measurement[]> {
  const page = await browser.newPage();
  await page.goto(url, { waitUntil: "networkidle" });
  const loaded = await page.evaluate<{ name: string; encodedBodySize: number }[]>(`
    [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
      .filter(({ name }) => !name.includes("/api/"))
      .map(({ name, encodedBodySize }) => ({ name, encodedBodySize }))`);
  await page.close();
  const kilobytes = (isFont: boolean) =>
    loaded
      .filter(({ name }) => name.endsWith(".woff2") === isFont)
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0) / 1_000;
  return [
    {
      name: "page: first load of home",
      value: kilobytes(false),
      unit: "kB",
      target: TARGETS.kilobytes,
      better: "less",
    },
    { name: "page: its fonts", value: kilobytes(true), unit: "kB" },
  ];
}

/** Opens a page in a tab that has the program in its cache, as a user's has, and does what a user would. */
async function visited(browser: TestBrowser, url: string, filled: Filled, visit: Visit): Promise<Vitals> {
  const page = await browser.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  try {
    await page.goto(`${url}/-`);
    await observe(page);
    await page.goto(`${url}${visit.path(filled)}`);
    await visit.isThere(page);
    await drawn(page);
    // What a user does moves things, as it should.
    const { shift } = await vitalsOf(page);
    for (const act of visit.acts) {
      await act(page);
      await drawn(page);
    }
    return { ...(await vitalsOf(page)), shift };
  } finally {
    await page.close();
  }
}

/** Resolves when what was done is drawn. */
async function drawn(page: Page): Promise<void> {
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
}

function figuresOf(name: string, { lcpMs, shift, interactionMs }: Vitals): Measurement[] {
  return [
    { name: `page: ${name}, largest part drawn`, value: lcpMs, unit: "ms", target: TARGETS.lcpMs, better: "less" },
    {
      name: `page: ${name}, slowest interaction`,
      value: interactionMs,
      unit: "ms",
      target: TARGETS.interactionMs,
      better: "less",
    },
    { name: `page: ${name}, layout shift`, value: shift, unit: "", target: TARGETS.shift, better: "less" },
  ];
}

/** The heap of the page of a running execution, after a while and at the end. */
async function liveHeap(browser: TestBrowser, address: string, liveMs: number): Promise<Measurement[]> {
  const page = await browser.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  try {
    await observe(page);
    await page.goto(address);
    await page.locator('[data-live="live"]').waitFor();
    await page.waitForTimeout(SETTLED_MS);
    const before = await heapOf(page);
    await page.waitForTimeout(liveMs - SETTLED_MS);
    const after = await heapOf(page);
    const { shift } = await vitalsOf(page);
    return [
      { name: "page: live, heap after a while", value: before / 1e6, unit: "MB" },
      {
        name: `page: live, heap after ${liveMs / 60_000} min, times that`,
        value: after / before,
        unit: "",
        target: TARGETS.growth,
        better: "less",
      },
      { name: "page: live, layout shift", value: shift, unit: "", target: TARGETS.shift, better: "less" },
    ];
  } finally {
    await page.close();
  }
}
