import type { Browser, Page } from "playwright-core";
import { watchContext } from "./stuck.ts";

/*
 * Tabs that test after test uses. The page takes twice as much work in a new tab: that is a new process, which has to compile
 * its scripts, and a context without a cache.
 */

/** Tabs that wait for the next test, each in a context of its own, per browser. */
const free = new WeakMap<Browser, Page[]>();

/** What tests listen to. */
const EVENTS = ["console", "dialog", "pageerror", "request", "response"] as const;

/**
 * A tab without anything of the test that had it before: no cookie, permission, stored value, route or listener. `close` gives it
 * back. `taken` holds it until then.
 */
export async function openTab(browser: Browser, taken: Set<Page>): Promise<Page> {
  // A test that stood still has had all of them closed.
  const tabs = (free.get(browser) ?? []).filter((tab) => !tab.isClosed());
  free.set(browser, tabs);
  const tab = tabs.pop() ?? (await newTab(browser));
  taken.add(tab);
  tab.close = async () => {
    await leave(tab);
    taken.delete(tab);
    tabs.push(tab);
  };
  return tab;
}

/** Closes those for good that tests have not given back, because they failed. */
export async function closeTabs(taken: ReadonlySet<Page>): Promise<void> {
  await Promise.all([...taken].map((tab) => tab.context().close()));
}

async function newTab(browser: Browser): Promise<Page> {
  const context = await browser.newContext();
  watchContext(context);
  return await context.newPage();
}

/** Throws where the tab shows a page of the browser's own, such as for an address without an answer. */
async function leave(tab: Page): Promise<void> {
  for (const event of EVENTS) tab.removeAllListeners(event);
  await tab.unrouteAll({ behavior: "ignoreErrors" });
  // A form that is not saved asks whether it may be left.
  tab.on("dialog", (dialog) => void dialog.accept());
  await tab.evaluate("localStorage.clear(); sessionStorage.clear(); location.replace('about:blank')");
  await tab.waitForURL("about:blank");
  tab.removeAllListeners("dialog");
  await tab.context().clearCookies();
  await tab.context().clearPermissions();
}
