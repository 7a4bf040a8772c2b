import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { openedPage, startOwnGui } from "../test/support/page/gui.ts";
import { setLook } from "../test/support/page/looks.ts";

/*
 * `npm run screenshots`: every page, light and dark, wide and as a phone shows it, of real runs in a real browser, to be looked at before a
 * changed page is merged. They go to a folder beside the checkout's data; `-- FOLDER` names another one, and `-- --only=home,inbox` makes these views alone. `-- --readme` makes the pictures of
 * the README instead. One execution is caught while it works; others have completed, failed, or wait.
 */

const README = join(import.meta.dirname, "../../docs/images");
const ALL = join(import.meta.dirname, "../../.flow/screenshots");

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

/** Waits for somebody, and for a signal that comes later. */
const SIGN_OFF = `apiVersion: flow/v2
kind: Playbook
metadata: { name: deploy, path: release/deploy, description: Deploys a release once it was signed off. }
workload: { release: "2026.11.3" }
workflow:
  - step: build
    tool: { kind: noop, result: { image: "registry/{{ workload.release }}" } }
    next: { arcs: [{ step: sign_off }] }
  - step: sign_off
    tool: { kind: wait, signal: signed_off, key: "{{ workload.release }}" }
    next: { arcs: [{ step: ship }] }
  - step: ship
    tool: { kind: noop, result: { shipped: "{{ build.image }}" } }
`;

/** People decide, with a form. */
const RELEASE = `apiVersion: flow/v2
kind: Playbook
metadata: { name: release, path: release/publish, description: Publishes a release when two people agree. }
workload: { version: "2026.11.3" }
workflow:
  - step: ask
    tool:
      kind: wait
      approval:
        title: Release {{ workload.version }}?
        description: |
          The changes are in **CHANGELOG.md**. Before you agree:

          - the canary ran for a day without new errors
          - \`billing\` is not in its month-end close
        form:
          type: object
          properties:
            window: { type: string, enum: [now, tonight], description: When it goes out }
            share: { type: number, default: 25, maximum: 100, description: Per cent of the traffic at first }
          required: [window]
        required: 2
        escalate: { after: 4h, to: { roles: [head_of_ops] } }
      timeout: 172800
    next: { arcs: [{ step: publish }] }
  - step: publish
    tool: { kind: noop }
`;

/** Starts by itself: at times, and by deliveries, not all of which it takes. */
const NIGHTLY = `apiVersion: flow/v2
kind: Playbook
metadata: { name: nightly report, path: reports/nightly, description: Sums up a day. }
workflow:
  - { step: sum, tool: { kind: noop, result: { rows: 120 } } }
triggers:
  - { name: nightly, schedule: { cron: "0 6 * * 1-5", timezone: Europe/Berlin, jitter: 60s }, overlap: skip, catchup: { mode: last, window: 1d } }
  - { name: often, schedule: { cron: "*/20 * * * *" } }
  - { name: pushed, webhook: { path: reports/pushed, verify: { preset: none }, when: "{{ body.branch == 'main' }}" } }
  - { name: after_settling, execution: { path: "shop/settle_week" } }
  - { name: asked, signal: { name: recalculate } }
`;

/** A week of shops: each is an execution of its own. */
const WEEK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: week, path: shop/settle_week, description: Settles the orders of a week, day by day. }
workload: { days: ["2026-11-16", "2026-11-17", "2026-11-18"] }
workflow:
  - step: days
    loop: { in: "{{ workload.days }}", iterator: day }
    tool: { kind: playbook, path: shop/settle_orders, input: { day: "{{ day }}", orders: 5 } }
`;

/** A view: its address, what its file is called, and a text that shows that it is there. */
type View = readonly [path: string, file: string, sign: string | RegExp];

const ONLY = process.argv
  .find((word) => word.startsWith("--only="))
  ?.slice("--only=".length)
  .split(",") ?? [""];
const isReadme = process.argv.includes("--readme");
const folder = isReadme ? README : resolve(process.argv.slice(2).find((word) => !word.startsWith("-")) ?? ALL);
const gui = await startOwnGui({ FLOW_WORKER_NAME: "worker-1" });
try {
  mkdirSync(folder, { recursive: true });
  if (!isReadme) await shootAll([["/", "first-visit", "Welcome to flow"]]);
  for (const content of [SETTLE, SIGN_OFF, RELEASE, NIGHTLY, WEEK])
    await gui.post("/api/catalog/register", { content });
  const runs = await makeRuns();
  await (isReadme ? shootReadme(runs) : shootAll(viewsOf(runs)));
} finally {
  await gui.close();
}

interface Runs {
  failed: string;
  live: string;
  waiting: string;
  week: string;
  approval: string;
  schedule: string;
  webhook: string;
}

async function makeRuns(): Promise<Runs> {
  const settle = (workload: Record<string, unknown>, waitMs?: number) => run("shop/settle_orders", workload, waitMs);
  for (const day of ["2026-11-14", "2026-11-15", "2026-11-16", "2026-11-17"]) await settle({ day });
  await settle({ day: "2026-11-18", orders: 30 });
  const failed = await settle({ day: "2026-11-19", fail: true });
  const week = await run("shop/settle_week", {});
  const waiting = await run("release/deploy", {}, 0);
  const live = await settle({ day: "2026-11-20", slow_seconds: 600 }, 0);
  await run("release/publish", { version: "2026.11.2" }, 0);
  await run("release/publish", {}, 0);
  for (const branch of ["main", "draft", "main"]) await gui.post("/hooks/reports/pushed", { branch });
  const schedule = await triggerId("nightly");
  await gui.post(`/api/triggers/${schedule}/fire`, {});
  const webhook = await triggerId("pushed");
  const { approvals } = await get("/api/approvals?mine");
  const [{ approval_id: approval }] = approvals as [{ approval_id: string }];
  return { failed, live, waiting, week, approval, schedule, webhook };
}

async function triggerId(name: string): Promise<string> {
  const { triggers } = await get(`/api/triggers?path=reports/nightly&name=${name}`);
  return (triggers as [{ trigger_id: string }])[0].trigger_id;
}

async function get(path: string): Promise<Record<string, unknown>> {
  return (await (await fetch(`${gui.serving.url}${path}`)).json()) as Record<string, unknown>;
}

async function run(path: string, workload: Record<string, unknown>, waitMs = 30_000): Promise<string> {
  const { execution_id } = await gui.post("/api/execute", { path, workload, wait_ms: waitMs });
  return String(execution_id);
}

function viewsOf({ failed, live, waiting, week, approval, schedule, webhook }: Runs): readonly View[] {
  return [
    ["/", "home", "Needs you"],
    ["/executions", "executions", "shop/settle_orders"],
    ["/executions?view=errors", "errors", /kinds? of error in/],
    [`/executions/${failed}`, "run-failed", "the ledger is closed"],
    [`/executions/${live}`, "run-live", "charge"],
    [`/executions/${live}?tab=graph`, "run-graph", "charge"],
    [`/executions/${waiting}`, "run-waiting", "signed_off"],
    [`/executions/${week}`, "run-nested", "days"],
    ["/catalog", "playbooks", "shop/settle_orders"],
    ["/entry/shop/settle_orders", "playbook", "Slowest steps"],
    ["/entry/shop/settle_orders?tab=run", "run-form", "orders"],
    ["/register?from=shop%2Fsettle_orders", "editor", "apiVersion"],
    [`/inbox?approval=${approval}`, "inbox", "Before you agree"],
    ["/triggers", "triggers", "after_settling"],
    [`/triggers/${schedule}`, "trigger", "on weekdays at 06:00"],
    [`/triggers/${webhook}`, "webhook", "skipped"],
    ["/operations", "operations", "worker-1"],
    ["/credentials", "credentials", "pg_auth"],
    ["/agents", "agents", "No agent is shown here"],
    ["/access?tab=audit", "audit", "playbook/shop/settle_orders"],
  ];
}

/** Each view in both colours, at a desk's width and a phone's. */
async function shootAll(views: readonly View[]): Promise<void> {
  for (const [path, file, sign] of views.filter(([, name]) => ONLY.some((word) => name.includes(word)))) {
    for (const scheme of ["light", "dark"] as const) {
      for (const width of [1_440, 390]) await shoot(path, `${file}-${scheme}-${width}.png`, sign, { scheme, width });
    }
  }
}

async function shootReadme({ live }: Runs): Promise<void> {
  await shoot("/?span=1h", "home.png", "Needs you", { scheme: "light", width: 1_280 });
  await shoot(`/executions/${live}?tab=graph`, "execution.png", "charge", { scheme: "light", width: 1_280 });
  await shoot("/executions", "executions.png", "shop/settle_orders", { scheme: "dark", width: 1_280 });
}

/** A picture of a page once it shows what it is for. */
async function shoot(
  path: string,
  file: string,
  sign: string | RegExp,
  look: { scheme: "light" | "dark"; width: number },
): Promise<void> {
  const page = await openedPage(gui.browser, `${gui.serving.url}${path}`, look);
  await setLook(page, look);
  await page.locator("main").getByText(sign).first().waitFor();
  // Fonts and the last layout.
  await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => undefined);
  await page.evaluate("document.fonts.ready");
  writeFileSync(join(folder, file), await page.screenshot());
  process.stdout.write(`${relative(process.cwd(), join(folder, file))}\n`);
  await page.close();
}
