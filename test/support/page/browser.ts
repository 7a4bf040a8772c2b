import { after } from "node:test";
import bundled from "@sparticuz/chromium";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { isTest } from "../each-test.ts";
import { watchContext } from "./stuck.ts";
import { closeTabs, openTab } from "./tabs.ts";

/** A browser as one test file has it: its contexts share nothing with those of other files, though the process may be one. */
export interface TestBrowser extends Pick<Browser, "newContext" | "newPage"> {
  /** A page for one test, see {@link openTab}. A script that is added to it stays: such a test takes a new page. */
  newTab(): Promise<Page>;
  /** Ends what this file has opened. */
  close(): Promise<void>;
}

// The test files of a process share one Chromium.
let shared: Promise<Browser> | undefined;
// Here and not at the first use: it is to end with the process's tests, not with those of the first file.
if (isTest) after(async () => (await shared)?.close());

/** A real, headless Chromium. */
export async function startBrowser(): Promise<TestBrowser> {
  if (!isTest) {
    const browser = await launch();
    return {
      newContext: (options) => browser.newContext(options),
      newPage: (options) => browser.newPage(options),
      newTab: () => browser.newPage(),
      close: () => browser.close(),
    };
  }
  shared ??= launch();
  const browser = await shared;
  const contexts = new Set<BrowserContext>();
  const tabs = new Set<Page>();
  const newContext: Browser["newContext"] = async (options) => {
    const context = await browser.newContext(options);
    contexts.add(context);
    watchContext(context);
    context.on("close", () => contexts.delete(context));
    return context;
  };
  return {
    newContext,
    async newPage(options) {
      const context = await newContext(options);
      const page = await context.newPage();
      // Closing what is closed is no fault.
      page.on("close", () => void context.close().catch(() => undefined));
      return page;
    },
    newTab: () => openTab(browser, tabs),
    async close() {
      await Promise.all([closeTabs(tabs), ...[...contexts].map((context) => context.close())]);
    },
  };
}

/**
 * The one that the test package carries, so that nothing has to be installed; `CHROMIUM_PATH` names
 * another. The flags that the package proposes are not taken: they switch off the same-origin policy, which is tested here.
 * The background services are off, because every start would look up hosts of other people.
 */
async function launch(): Promise<Browser> {
  const executablePath = process.env["CHROMIUM_PATH"] ?? (await bundled.executablePath());
  return chromium.launch({
    executablePath,
    args: [
      "--headless=shell",
      // Tests run as root in containers, where the sandbox cannot be made.
      "--no-sandbox",
      "--no-zygote",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}
