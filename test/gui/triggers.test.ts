import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startGui } from "../support/page/gui.ts";
import { assertViewsUsable } from "../support/page/looks.ts";

/* What starts playbooks by itself: its list, and the page of one (docs/triggers.md). */

const NIGHTLY = `apiVersion: flow/v2
kind: Playbook
metadata: { name: nightly, path: triggers/nightly }
workflow:
  - { step: start, tool: { kind: noop } }
triggers:
  - name: nightly
    schedule: { cron: "0 6 * * 1-5", timezone: Europe/Berlin }
    overlap: skip
  - name: pushed
    webhook: { path: gui/pushed, verify: { preset: none }, when: "{{ body.branch == 'main' }}" }
`;
const gui = await startGui();
after(() => gui.close());
const { serving, post, opened } = gui;
await post("/api/catalog/register", { content: NIGHTLY });

async function triggerId(name: string): Promise<string> {
  const answer = await fetch(`${serving.url}/api/triggers?path=triggers/nightly&name=${name}`);
  const { triggers } = (await answer.json()) as { triggers: { trigger_id: string }[] };
  return String(triggers[0]?.trigger_id);
}

test("a schedule has its next times and a calendar; it is fired by hand, turned off and on", async (t) => {
  const page = await opened("/triggers?kind=schedule");
  await page.getByRole("searchbox", { name: "Playbook or name" }).fill("triggers/night");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "triggers/nightly" }).click();
  await page.getByText("on weekdays at 06:00").waitFor();
  await page.getByRole("button", { name: "Fire now" }).click();
  const started = page.getByRole("status").getByRole("link");
  const href = await started.getAttribute("href");
  await page.locator(`[data-part="fires"] a[href="${href}"]`).waitFor();
  await page.locator(`[data-part="calendar"] a[href="${href}"]`).waitFor();
  await page.getByRole("link", { name: "Month after" }).click();
  await page.waitForURL(/month=\d{4}-\d\d/);
  await page.locator('[data-part="calendar"] .coming').first().waitFor();
  await page.getByRole("link", { name: "Missed" }).click();
  await page.getByText("None is missed.").waitFor();
  await page.getByRole("button", { name: "Turn off …" }).click();
  await page.getByRole("button", { name: "Turn it off" }).click();
  await page.getByText("It is off and will not fire at these times.").waitFor();
  await page.getByRole("button", { name: "Turn on" }).click();
  await page.getByRole("button", { name: "Turn off …" }).waitFor();
  await assertViewsUsable(t, page, [
    ["/triggers", "triggers/nightly"],
    [`/triggers/${await triggerId("nightly")}`, "on weekdays at 06:00"],
  ]);
  await page.close();
});

test("a backfill says how many times it would be and where gaps are before it starts; then its page follows", async () => {
  const page = await opened(`/triggers/${await triggerId("nightly")}`);
  await page.getByRole("button", { name: "Backfill …" }).click();
  const dialog = page.getByRole("dialog", { name: "Make up for times of nightly" });
  await dialog.getByLabel("From").fill("2026-01-05T00:00");
  await dialog.getByLabel("to", { exact: true }).fill("2026-01-04T00:00");
  // The browser logs the refusal.
  page.removeAllListeners("console");
  await dialog.getByRole("alert").waitFor();
  await dialog.getByLabel("to", { exact: true }).fill("2026-01-10T00:00");
  await dialog.getByRole("heading", { name: /^5 times; for 5 / }).waitFor();
  await dialog.getByRole("button", { name: "Start 5 executions" }).click();
  await page.waitForURL(/\/executions\/bulk\/\d+/);
  await page.close();
});

test("a webhook shows its address, its last deliveries with verdicts, and no calendar", async (t) => {
  const id = await triggerId("pushed");
  const deliver = async (branch: string) =>
    (await (
      await fetch(`${serving.url}/hooks/gui/pushed`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ branch }),
      })
    ).json()) as Record<string, unknown>;
  const { execution_id: executionId } = await deliver("main");
  await deliver("draft");
  const broken = { method: "POST", headers: { "content-type": "application/json" }, body: "{ broken" };
  await (await fetch(`${serving.url}/hooks/gui/pushed`, broken)).text();
  const page = await opened(`/triggers/${id}`);
  await page.getByText(`${serving.url}/hooks/gui/pushed`).waitFor();
  const fires = page.locator('[data-part="fires"]');
  await fires.getByRole("link", { name: String(executionId) }).waitFor();
  await fires.getByRole("row").getByText("skipped").waitFor();
  const deliveries = page.locator('[data-part="deliveries"]');
  await deliveries.getByRole("row").getByText("unreadable").waitFor();
  await deliveries.getByRole("link", { name: String(executionId) }).waitFor();
  await deliveries.getByText("Its `when` does not hold").waitFor();
  assert.equal(await deliveries.getByRole("row").count(), 4);
  assert.equal(await page.locator('[data-part="calendar"]').count(), 0);
  await assertViewsUsable(t, page, [[`/triggers/${id}`, "unreadable"]]);
  await deliveries.getByRole("button", { name: "Refused" }).click();
  await deliveries.getByRole("link", { name: String(executionId) }).waitFor({ state: "detached" });
  assert.equal(await deliveries.getByRole("row").count(), 2);
  assert.equal(await fires.getByRole("row").count(), 3);
  await page.close();
});

test("a trigger that is gone says so", async () => {
  const page = await opened("/triggers");
  // The browser logs the 404.
  page.removeAllListeners("console");
  await page.goto(`${serving.url}/triggers/4711`);
  await page.getByText("Page not found").waitFor();
  await page.close();
});
