import type { BrowserContext, Page } from "playwright-core";
import { onEachTest } from "../each-test.ts";

/*
 * What a failed test saw, and an end of what waits in a browser for ever. Without it the runner ends the whole room, after a
 * minute in which no test began or ended.
 */

const STUCK_MS = 45_000;
/** A page whose script spins does not say what it shows. */
const SHOWN_MS = 3_000;
const SHOWN_CHARACTERS = 2_000;

const open = new Set<BrowserContext>();
let timer: NodeJS.Timeout | undefined;
let seen: string | undefined;

/** Closes this context when a test stands still, so that the test fails; and has its pages told where a test fails. */
export function watchContext(context: BrowserContext): void {
  open.add(context);
  context.on("close", () => open.delete(context));
  restart();
}

onEachTest({
  onBegin: restart,
  async onEnd(test) {
    clearTimeout(timer);
    // Node's types do not know it yet.
    if ((test as { error?: unknown }).error != null) test.diagnostic(seen ?? (await shown()));
    seen = undefined;
  },
});

function restart(): void {
  clearTimeout(timer);
  timer = setTimeout(() => void endAll(), STUCK_MS);
  timer.unref();
}

async function endAll(): Promise<void> {
  seen = `Nothing began or ended for ${STUCK_MS / 1000} s, and the browser was closed. ${await shown()}`;
  await Promise.all([...open].map((context) => context.close()));
}

/** Address and text of each open page. */
async function shown(): Promise<string> {
  const pages = [...open].flatMap((context) => context.pages()).filter((page) => page.url() !== "about:blank");
  const texts = await Promise.all(pages.map(textOf));
  return texts.length === 0 ? "No page was open." : `The browser showed:\n${texts.join("\n")}`;
}

async function textOf(page: Page): Promise<string> {
  const late = new Promise<string>((resolve) => {
    setTimeout(resolve, SHOWN_MS, `(no answer for ${SHOWN_MS / 1000} s)`);
  });
  const text = page.evaluate<string>(TEXT).catch(String);
  return `${page.url()}\n${(await Promise.race([text, late])).slice(0, SHOWN_CHARACTERS)}`;
}

/** Text as it is seen, and that of editors, each of which is a tree of its own. */
const TEXT = `[document.body, ...[...document.querySelectorAll(".editor")].map(({ shadowRoot }) => shadowRoot?.querySelector(".cm-content"))]
  .map((element) => element?.innerText ?? "").join("\\n")`;
