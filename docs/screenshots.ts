import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { type Gui, openedPage, startOwnGui } from "../test/support/page/gui.ts";

/*
 * `npm run screenshots`: the pictures of the README, of real runs in a real browser. One execution is caught while it works,
 * others stand in the list: completed, failed, cancelled.
 */

const IMAGES = join(import.meta.dirname, "../../docs/images");

/** An order's way, with a loop, a condition that is not met, a retry, and a last step that waits for somebody. */
const SETTLE = `apiVersion: flow/v2
kind: Playbook
metadata:
  name: settle orders
  path: shop/settle_orders
  description: Charges the orders of a day, and tells finance when something is left over.
workload: { day: "2026-11-20", orders: 12, slow_seconds: 0, fail: false }
workflow:
  - step: load_orders
    tool:
      kind: python
      args: { day: "{{ workload.day }}", orders: "{{ workload.orders }}" }
      code: |
        def main(day, orders):
            print("loading orders of", day)
            return [{"id": f"{day}-{n:03}", "cents": 1250 + 310 * n} for n in range(orders)]
    next:
      arcs:
        - { step: nothing_to_do, when: "{{ load_orders | length == 0 }}" }
        - { step: charge }
  - step: nothing_to_do
    tool: { kind: noop }
  - step: charge
    loop: { in: "{{ load_orders }}", iterator: order, spec: { mode: parallel, max_in_flight: 4 } }
    tool:
      kind: python
      args: { order: "{{ order }}" }
      code: |
        import time
        def main(order):
            time.sleep(0.15)
            return {"id": order["id"], "charged": order["cents"]}
    next:
      arcs:
        - { step: book, when: "{{ event.name == 'loop.done' }}" }
        - { step: tell_finance, when: "{{ event.name == 'step.failed' }}" }
  - step: tell_finance
    tool: { kind: noop }
  - step: book
    tool:
      kind: python
      args: { seconds: "{{ workload.slow_seconds }}", fail: "{{ workload.fail }}" }
      code: |
        import time
        def main(seconds, fail):
            print("booking the charges")
            if fail: raise RuntimeError("the ledger is closed for 2026-11-20")
            time.sleep(seconds)
            return {"booked": True}
    next: { arcs: [{ step: report }] }
  - step: report
    tool: { kind: noop, result: { orders: "{{ charge.stats.success }}", booked: "{{ book.booked }}" } }
`;

const gui = await startOwnGui({ FLOW_WORKER_NAME: "worker-1" });
try {
  mkdirSync(IMAGES, { recursive: true });
  await gui.post("/api/catalog/register", { content: SETTLE });
  await run(gui, { day: "2026-11-17" });
  await run(gui, { day: "2026-11-18", orders: 30 });
  await run(gui, { day: "2026-11-19", fail: true });
  const live = await run(gui, { day: "2026-11-20", slow_seconds: 60 }, 0);
  await shoot(gui, `/executions/${live}?tab=graph`, "execution.png", "light", async (page) => {
    await page.getByText("12 items").first().waitFor();
  });
  await shoot(gui, "/operations", "operations.png", "dark", async (page) => {
    await page.getByText("Workers").first().waitFor();
  });
} finally {
  await gui.close();
}

async function run({ post }: Gui, workload: Record<string, unknown>, waitMs = 30_000): Promise<string> {
  const { execution_id } = await post("/api/execute", { path: "shop/settle_orders", workload, wait_ms: waitMs });
  return String(execution_id);
}

/** A picture of a page once it shows what it is for. */
async function shoot(
  { browser, serving }: Gui,
  path: string,
  file: string,
  scheme: "light" | "dark",
  ready: (page: Page) => Promise<void>,
): Promise<void> {
  const page = await openedPage(browser, `${serving.url}${path}`, { scheme });
  await ready(page);
  // Fonts and the last layout.
  await page.waitForLoadState("networkidle", { timeout: 5_000 }).catch(() => undefined);
  writeFileSync(join(IMAGES, file), await page.screenshot());
  process.stdout.write(`${join("docs/images", file)}\n`);
  await page.close();
}
