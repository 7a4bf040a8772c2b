import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { TestContext } from "node:test";
import type { Page } from "playwright-core";

/** How a page is looked at. */
export interface Look {
  /** Pixels; default 1280. */
  width?: number;
  /** Default light. */
  scheme?: "light" | "dark";
}

/** How everybody's page is looked at. */
export const LOOKS: readonly Look[] = [{ scheme: "light" }, { scheme: "dark" }, { width: 360 }];

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Rules of axe-core that colours decide; they take half of its time. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];
const WITHOUT_COLOURS = Object.fromEntries(COLOUR_RULES.map((rule) => [rule, { enabled: false }]));

/**
 * What axe-core calls serious or critical of a page as it stands, by the rules of these options; all of them by default. It fails
 * (4.14) where what it looks at is taken away meanwhile, as live pages do: then it looks once more.
 */
export async function accessibility(page: Page, options: object = {}): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(axe);
  const run = `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations)`;
  const found = await page.evaluate<Violation[]>(`${run}.catch(() => ${run})`);
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** The page as it stands has no serious accessibility violation, and nothing sticks out at its side. */
export async function assertUsable(page: Page, options?: object): Promise<void> {
  assert.deepEqual(await accessibility(page, options), []);
  await assertFits(page);
}

/** Nothing sticks out at the side of the page. */
export async function assertFits(page: Page): Promise<void> {
  const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  assert.ok(overflow <= 0, `${overflow} px stick out at the side`);
}

/** Sets how a page is looked at. A sign that turns would be drawn 60 times a second, for as long as a test waits. */
export async function setLook(page: Page, { width = 1280, scheme = "light" }: Look): Promise<void> {
  await Promise.all([
    page.setViewportSize({ width, height: 800 }),
    page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" }),
  ]);
}

/** Shows an open page in another look. Resolves when it is drawn so. */
export async function changeLook(page: Page, look: Look): Promise<void> {
  await setLook(page, look);
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
}

/** An address, and a text of its main part that shows that its subject is there. */
export type View = readonly [path: string, sign: string];

/**
 * Each of these views can be used in every look, a subtest for each. The page goes from one to the next as by its own links: it is
 * loaded once, and axe-core too.
 */
export async function assertViewsUsable(t: TestContext, page: Page, views: readonly View[]): Promise<void> {
  for (const [path, sign] of views) {
    await t.test(path.replaceAll(/\d{6,}/g, "…"), async () => {
      await goWithin(page, path);
      for (const look of LOOKS) {
        await changeLook(page, look);
        // A graph is fitted to the page when it is opened; what is out of sight is not drawn.
        if (look.width !== undefined && path.includes("tab=graph")) await goWithin(page, path);
        await page.locator("main").getByText(sign).first().waitFor();
        await assertUsable(page, optionsOf(look));
      }
    });
  }
}

/** In the dark the page is the same but for its colours; where it is narrow the colours are the same. */
function optionsOf({ width, scheme }: Look): object {
  if (scheme === "dark") return { runOnly: { type: "rule", values: COLOUR_RULES } };
  return width === undefined ? {} : { rules: WITHOUT_COLOURS };
}

/**
 * Goes to an address as a link does, without loading the page; by way of one that shows nothing, so that what is waited for next
 * is not seen in the view before.
 */
export async function goWithin(page: Page, path: string): Promise<void> {
  const nothing = page.getByRole("heading", { name: "Page not found" });
  await page.evaluate("history.pushState(null, '', '/-')");
  await nothing.waitFor();
  await page.evaluate(`history.pushState(null, "", ${JSON.stringify(path)})`);
  await nothing.waitFor({ state: "detached" });
}

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string }[];
}
