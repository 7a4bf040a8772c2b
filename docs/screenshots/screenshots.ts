import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { Page } from "playwright-core";
import { openedPage, startOwnGui } from "../../test/support/page/gui.ts";
import { setLook } from "../../test/support/page/looks.ts";
import { shootGrid } from "./grid.ts";
import { PLAYBOOKS } from "./playbooks.ts";

/*
 * `npm run screenshots`: every page, light and dark, wide and as a phone shows it, of real runs in a real browser, to be looked at before a
 * changed page is merged. They go to a folder beside the checkout's data; `-- FOLDER` names another one, and `-- --only=home,inbox` makes
 * these views alone. `-- --docs` makes the pictures of the README and the grid of docs/gui.md instead. Some executions are caught while they
 * work, wait or are paused; others have completed or failed. The last view is of a server that has gone.
 */

const IMAGES = join(import.meta.dirname, "../../../docs/images");
const ALL = join(import.meta.dirname, "../../../.flow/screenshots");

/** A view: its address, what its file is called, a text that shows that it is there, and what is done then. */
type View = readonly [path: string, file: string, sign: string | RegExp, act?: (page: Page) => Promise<unknown>];

/** How a page is looked at. */
interface Look {
  scheme: "light" | "dark";
  width: number;
}

/** The views of the grid, three in a row. */
const GRID = [
  ...["run-failed", "run-graph", "run-loop"],
  ...["run-nested", "rerun", "run-log"],
  ...["playbook", "editor", "triggers"],
  ...["trigger", "inbox", "operations"],
];

const WIDE = 1_440;
const NARROW = 390;

const ONLY = process.argv
  .find((word) => word.startsWith("--only="))
  ?.slice("--only=".length)
  .split(",") ?? [""];
const isDocs = process.argv.includes("--docs");
const folder = isDocs ? IMAGES : resolve(process.argv.slice(2).find((word) => !word.startsWith("-")) ?? ALL);
const gui = await startOwnGui({ FLOW_WORKER_NAME: "worker-1" });
try {
  mkdirSync(folder, { recursive: true });
  if (!isDocs) await shootAll([["/", "first-visit", "Welcome to flow"]]);
  for (const content of PLAYBOOKS) await gui.post("/api/catalog/register", { content });
  const runs = await makeRuns();
  await (isDocs ? shootDocs(runs) : shootAll(viewsOf(runs)));
  if (!isDocs) await shootGone(runs);
} finally {
  await gui.close();
}

type Runs = Awaited<ReturnType<typeof makeRuns>>;

async function makeRuns() {
  const settle = (workload: Record<string, unknown>, waitMs?: number) => run("shop/settle_orders", workload, waitMs);
  for (const day of ["2026-11-14", "2026-11-15", "2026-11-16", "2026-11-17"]) await settle({ day });
  await settle({ day: "2026-11-18", orders: 30 });
  const failed = await settle({ day: "2026-11-19", fail: true });
  const month = await run("shop/close_month", {});
  const loop = await run("shop/check_prices", {});
  const waiting = await run("release/deploy", {}, 0);
  const live = await settle({ day: "2026-11-20", slow_seconds: 600 }, 0);
  const retrying = await run("shop/sync_ledger", {}, 0);
  const paused = await settle({ day: "2026-11-21", orders: 40 }, 0);
  await gui.post(`/api/executions/${paused}/pause`, { reason: "The bank is closed for an hour" });
  await run("release/publish", { version: "2026.11.2" }, 0);
  await run("release/publish", {}, 0);
  for (const branch of ["main", "draft", "main"]) await gui.post("/hooks/reports/pushed", { branch });
  const schedule = await triggerId("nightly");
  await gui.post(`/api/triggers/${schedule}/fire`, {});
  const webhook = await triggerId("pushed");
  const { approvals } = await get("/api/approvals?mine");
  const [{ approval_id: approval }] = approvals as [{ approval_id: string }];
  return { failed, month, loop, waiting, live, retrying, paused, approval, schedule, webhook };
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

function viewsOf(runs: Runs): readonly View[] {
  const { failed, month, loop, waiting, live, retrying, paused, approval, schedule, webhook } = runs;
  return [
    ["/", "home", "Needs you"],
    ["/executions", "executions", "shop/settle_orders"],
    ["/executions?view=errors", "errors", /kinds? of error in/],
    [`/executions/${failed}`, "run-failed", "the ledger is closed"],
    [`/executions/${live}`, "run-live", "charge"],
    [`/executions/${live}?tab=graph`, "run-graph", "charge"],
    [`/executions/${live}?tab=log`, "run-log", "loading orders of"],
    [`/executions/${waiting}`, "run-waiting", "signed_off"],
    [`/executions/${retrying}`, "run-retrying", /retr/i],
    [`/executions/${paused}`, "run-paused", "The bank is closed for an hour"],
    [`/executions/${loop}`, "run-loop", "check", unfolded("check")],
    [`/executions/${month}`, "run-nested", "weeks", unfolded("weeks", "item 0", "days", "item 0")],
    [`/executions/${failed}`, "rerun", "the ledger is closed", rerunDialog],
    ["/catalog", "playbooks", "shop/settle_orders"],
    ["/entry/shop/settle_orders", "playbook", "Slowest steps"],
    ["/entry/shop/settle_orders?tab=run", "run-form", "orders"],
    ["/entry/shop/settle_orders?tab=document", "source", "apiVersion"],
    ["/register?from=shop%2Fsettle_orders", "editor", "apiVersion"],
    ["/register?from=shop%2Fsettle_orders", "draft", "apiVersion", draftPanel],
    [`/register?from=shop%2Fsettle_orders&step=book&of=${failed}`, "test-step", "apiVersion", stepPanel],
    [`/inbox?approval=${approval}`, "inbox", "Before you agree"],
    ["/triggers", "triggers", "after_settling"],
    [`/triggers/${schedule}`, "trigger", "on weekdays at 06:00"],
    [`/triggers/${webhook}`, "webhook", "skipped"],
    ["/operations", "operations", "worker-1"],
    ["/credentials", "credentials", "pg_auth"],
    ["/agents", "agents", "No agents to show"],
    ["/access?tab=audit", "audit", "playbook/shop/settle_orders"],
  ];
}

/** Unfolds rows of the trace, one after the other: a name that is there twice means the lower one, which is still folded. */
function unfolded(...names: readonly string[]) {
  return async (page: Page) => {
    for (const name of names)
      await page
        .getByRole("button", { name: `Unfold ${name}`, exact: true })
        .first()
        .click();
  };
}

async function rerunDialog(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Run again …" }).first().click();
  await page.getByRole("dialog").getByText("book").first().waitFor();
}

/** The text of the editor run as it stands. */
async function draftPanel(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Run draft …" }).click();
  await page.getByRole("region", { name: "Preview" }).getByText("2026-11-20").waitFor();
  await page.getByRole("button", { name: "Run draft", exact: true }).click();
  await page.getByRole("region", { name: "Outcome" }).getByText("booked").waitFor();
}

/** One step of it run with what it had in a run. */
async function stepPanel(page: Page): Promise<void> {
  await page.getByRole("region", { name: "Plan" }).waitFor();
  await page.getByText("Inputs it was sent").click();
  await page.getByRole("region", { name: "Input" }).getByText("input.seconds").waitFor();
  await page.getByRole("button", { name: "Run this step" }).click();
  await page.getByRole("region", { name: "Outcome" }).getByText("the ledger is closed").first().waitFor();
}

/** Each view in both colours, at a desk's width and a phone's. */
async function shootAll(views: readonly View[]): Promise<void> {
  for (const view of views.filter(([, name]) => ONLY.some((word) => name.includes(word)))) {
    for (const scheme of ["light", "dark"] as const) {
      for (const width of [WIDE, NARROW]) await shoot(view, `${view[1]}-${scheme}-${width}.png`, { scheme, width });
    }
  }
}

/** A page whose server has gone meanwhile. */
async function shootGone({ live }: Runs): Promise<void> {
  if (!ONLY.some((word) => "server-gone".includes(word))) return;
  const looks = (["light", "dark"] as const).flatMap((scheme) => [WIDE, NARROW].map((width) => ({ scheme, width })));
  const pages = await Promise.all(looks.map((look) => opened(`/executions/${live}`, "charge", look)));
  gui.serving.process.kill("SIGTERM");
  await gui.serving.ended;
  for (const [index, look] of looks.entries()) {
    const page = pages[index] as Page;
    await page.getByRole("alert").getByText("cannot be reached").waitFor();
    save(`server-gone-${look.scheme}-${look.width}.png`, await page.screenshot());
  }
}

/** The README's pictures, and a dozen pages in one for docs/gui.md. */
async function shootDocs(runs: Runs): Promise<void> {
  const { live } = runs;
  const light = { scheme: "light", width: 1_280 } as const;
  const dark = { scheme: "dark", width: 1_280 } as const;
  await shoot(["/?span=1h", "", "Needs you"], "home.png", light);
  await shoot([`/executions/${live}?tab=graph`, "", "charge"], "execution.png", light);
  await shoot(["/executions", "", "shop/settle_orders"], "executions.png", dark);
  const named = new Map(viewsOf(runs).map((view) => [view[1], view]));
  const pictures: Buffer[] = [];
  for (const [index, name] of GRID.entries()) {
    const view = named.get(name);
    if (view === undefined) throw new Error(`The grid names a view that does not exist: ${name}`);
    pictures.push(await pictureOf(view, index % 2 === 0 ? light : dark));
  }
  save("pages.png", await shootGrid(gui.browser, pictures));
}

/** A picture of a page once it shows what it is for. */
async function shoot(view: View, file: string, look: Look): Promise<void> {
  save(file, await pictureOf(view, look));
}

async function pictureOf([path, , sign, act]: View, look: Look): Promise<Buffer> {
  const page = await opened(path, sign, look);
  await act?.(page);
  // Fonts and the last layout.
  await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => undefined);
  await page.evaluate("document.fonts.ready");
  const picture = await page.screenshot();
  await page.close();
  return picture;
}

async function opened(path: string, sign: string | RegExp, look: Look): Promise<Page> {
  const page = await openedPage(gui.browser, `${gui.serving.url}${path}`, look);
  await setLook(page, look);
  await page.locator("main").getByText(sign).first().waitFor();
  return page;
}

function save(file: string, picture: Buffer): void {
  writeFileSync(join(folder, file), picture);
  process.stdout.write(`${relative(process.cwd(), join(folder, file))}\n`);
}
