import type { Page } from "playwright-core";

/** What a user notices of a page's speed (web.dev, Web Vitals). */
export interface Vitals {
  /** When the largest text or picture was drawn, milliseconds after the address was opened. */
  lcpMs: number;
  /** How far things jumped without the user's doing: the sum of all layout shifts. */
  shift: number;
  /** The slowest answer to a click or a key: from it to the next picture, milliseconds, in steps of 8. */
  interactionMs: number;
}

/** The browser reports these only while a listener is there; the script runs before anything of the page. */
const OBSERVER = `
  globalThis.vitals = { lcpMs: NaN, shift: 0, interactionMs: 0 };
  const on = (type, take, more) =>
    new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true, ...more });
  on("largest-contentful-paint", ({ startTime }) => (vitals.lcpMs = startTime));
  on("layout-shift", ({ hadRecentInput, value }) => (vitals.shift += hadRecentInput ? 0 : value));
  on("event", ({ interactionId, duration }) => {
    if (interactionId > 0) vitals.interactionMs = Math.max(vitals.interactionMs, duration);
  }, { durationThreshold: 16 });`;

/** Has every page that the tab opens from now on watch itself. */
export async function observe(page: Page): Promise<void> {
  await page.addInitScript(OBSERVER);
}

/** What a page has come to that {@link observe} watches. */
export async function vitalsOf(page: Page): Promise<Vitals> {
  return await page.evaluate<Vitals>("vitals");
}

/** What a page's heap holds after a collection of garbage, bytes. */
export async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}
