import bundled from "@sparticuz/chromium";
import { type Browser, chromium } from "playwright-core";

/**
 * A real, headless Chromium. The one that the test package carries, so that nothing has to be installed; `CHROMIUM_PATH` names
 * another. The flags that the package proposes are not taken: they switch off the same-origin policy, which is tested here.
 * The background services are off, because every start would look up hosts of other people.
 */
export async function startBrowser(): Promise<Browser> {
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
