import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startOwnGui } from "../support/page/gui.ts";
import { assertViewsUsable } from "../support/page/looks.ts";

/*
 * The first page: what an empty server offers, and what one says on which something has run and failed. A service of its own, because it
 * begins empty.
 */

const FAILS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: closed, path: home/closed }
workflow:
  - { step: book, tool: { kind: shell, command: "echo the ledger is closed >&2; exit 3" } }
`;

const ASKS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: asks, path: home/asks }
workflow:
  - { step: ask, tool: { kind: wait, approval: { title: Close the books? } } }
triggers:
  - { name: yearly, schedule: { cron: "0 6 1 1 *" } }
`;

const gui = await startOwnGui();
after(() => gui.close());
const { post, opened } = gui;

test("an empty server offers examples, and one click registers and runs one", async (t) => {
  const page = await opened("/");
  await page.getByRole("heading", { name: "Welcome to flow" }).waitFor();
  await page.getByText("flow run examples/hello").waitFor();
  await assertViewsUsable(t, page, [["/", "Welcome to flow"]]);
  await page.getByRole("button", { name: "Register and run Loops and a called playbook" }).click();
  await page.waitForURL(/\/executions\/\d+/);
  await page.getByText("examples/nested_loops").first().waitFor();
  await page.close();
});

test("home says what has failed and where it is looked into, with figures of what has run", async (t) => {
  await post("/api/catalog/register", { content: FAILS });
  const { execution_id: id } = await post("/api/execute", { path: "home/closed", wait_ms: 30_000 });
  const page = await opened("/");
  await page.getByText("1 thing needs you.").waitFor();
  const needs = page.locator('[data-part="needs"]');
  await needs.getByText("home/closed failed").waitFor();
  assert.equal(
    await needs.getByRole("link", { name: "See why home/closed failed" }).getAttribute("href"),
    `/executions/${String(id)}`,
  );
  // The statistics follow what has ended within seconds.
  await page.getByRole("link", { name: "1 failed" }).waitFor();
  await page.getByText(/1 worker · \d+ of \d+ slots busy/).waitFor();
  await page.getByRole("slider", { name: /1 failed/ }).waitFor();
  await page.getByRole("button", { name: "Slowest" }).click();
  await page.getByRole("button", { name: "7 d" }).click();
  await page.waitForURL(/span=7d/);
  await assertViewsUsable(t, page, [["/", "home/closed failed"]]);
  await page.close();
});

test("home says what waits for a decision, what starts next, and opens what a bar stands for", async () => {
  await post("/api/catalog/register", { content: ASKS });
  await post("/api/execute", { path: "home/asks" });
  const page = await opened("/");
  await page.locator('[data-part="next"]').getByRole("link", { name: "home/asks" }).waitFor();
  await page.getByText("2 things need you.").waitFor();
  const bars = page.getByRole("slider", { name: /completed/ });
  await bars.focus();
  await page.keyboard.press("Shift+Home");
  assert.match((await bars.getAttribute("aria-valuetext")) ?? "", /[12] failed/);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/executions\?since=.*until=/);
  await page.getByText("home/closed").first().waitFor();
  await page.goBack();
  await page.getByRole("link", { name: "Decide: Close the books?" }).click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.close();
});

test("the palette goes to an execution by the start of its id, to a playbook and to a page, and says when nothing matches", async () => {
  const { execution_id: id } = await post("/api/execute", { path: "home/closed", wait_ms: 30_000 });
  const page = await opened("/catalog");
  await page.getByRole("heading", { name: "Playbooks" }).waitFor();
  const palette = page.getByRole("dialog", { name: "Search or run a command" });
  await page.keyboard.press("Control+k");
  await palette.getByRole("combobox").fill(String(id).slice(0, -1));
  await palette.getByRole("option", { name: new RegExp(String(id)) }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`/executions/${String(id)}`));
  await page.keyboard.press("Control+k");
  await palette.getByRole("combobox").fill("go credent");
  await palette.getByRole("option", { name: "Credentials", selected: true }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/credentials/);
  await page.getByRole("button", { name: /^Search or run a command/ }).click();
  await palette.getByRole("combobox").fill("run home/closed");
  await palette.getByRole("option", { name: /^Run home\/closed …/, selected: true }).click();
  await page.waitForURL(/\/entry\/home\/closed/);
  await page.keyboard.press("Control+k");
  await palette.getByRole("combobox").fill("zzz nothing");
  await palette.getByText("Nothing matches “zzz nothing”.").waitFor();
  await page.keyboard.press("Escape");
  await palette.waitFor({ state: "hidden" });
  await page.close();
});

test("Enter right after a text takes what the text names, though its answer is late and the list is of a text before", async () => {
  const { execution_id: id } = await post("/api/execute", { path: "home/closed", wait_ms: 30_000 });
  const page = await opened("/catalog");
  await page.getByRole("heading", { name: "Playbooks" }).waitFor();
  const palette = page.getByRole("dialog", { name: "Search or run a command" });
  const combobox = palette.getByRole("combobox");
  await page.keyboard.press("Control+k");
  await combobox.fill("home/clo");
  await palette.getByRole("option", { name: new RegExp(String(id)) }).waitFor();
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  await page.route(/\/api\/executions\?/, async (route) => {
    await answered;
    await route.continue();
  });
  await combobox.fill("inbox");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/inbox/);
  await page.keyboard.press("Control+k");
  await combobox.fill(String(id));
  await page.keyboard.press("Enter");
  await palette.getByText("Looking …").waitFor();
  answer();
  await page.waitForURL(new RegExp(`/executions/${String(id)}`));
  await page.unrouteAll({ behavior: "wait" });
  await page.close();
});
