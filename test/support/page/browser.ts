import { after } from "node:test";
import bundled from "@sparticuz/chromium";
import { type Browser, type BrowserContext, chromium } from "playwright-core";

/** A browser as one test file has it: its contexts share nothing with those of other files, though the process may be one. */
export interface TestBrowser extends Pick<Browser, "newContext" | "newPage"> {
  /** Ends what this file has opened. */
  close(): Promise<void>;
}

/** False outside of the test runner, where nothing ends what test files share: in screenshots. */
export const isTest = process.env["NODE_TEST_CONTEXT"] !== undefined;
// The test files of a process share one Chromium.
let shared: Promise<Browser> | undefined;
// Here and not at the first use: it is to end with the process's tests, not with those of the first file.
if (isTest) after(async () => (await shared)?.close());

/** A real, headless Chromium. */
export async function startBrowser(): Promise<TestBrowser> {
  if (!isTest) return await launch();
  shared ??= launch();
  const browser = await shared;
  const contexts = new Set<BrowserContext>();
  const newContext: Browser["newContext"] = async (options) => {
    const context = await browser.newContext(options);
    contexts.add(context);
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
    async close() {
      await Promise.all([...contexts].map((context) => context.close()));
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
