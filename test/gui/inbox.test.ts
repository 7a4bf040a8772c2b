import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startGui } from "../support/page/gui.ts";
import { assertViewsUsable } from "../support/page/looks.ts";

/* The inbox: what waits for a person's decision, and the form to decide (docs/approvals.md). */

const RELEASE = `apiVersion: flow/v2
kind: Playbook
metadata: { name: release, path: inbox/release }
workload: { version: 2.4.0 }
workflow:
  - step: release
    tool:
      kind: wait
      approval:
        title: Release {{ workload.version }}?
        description: "The changes are in **CHANGELOG.md**.\\n\\n- <img src=x onerror=alert(1)>"
        form:
          type: object
          properties: { window: { type: string, enum: [now, tonight] }, share: { type: number, maximum: 100 } }
          required: [window]
        escalate: { after: 1d, to: { roles: [head_of_ops] } }
      timeout: 172800
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop, result: { outcome: "{{ release.outcome }}", data: "{{ release.data }}" } }
`;
const gui = await startGui();
after(() => gui.close());
const { serving, post, opened } = gui;
await post("/api/catalog/register", { content: RELEASE });

/** Starts the playbook, and waits until it asks. */
async function asked(version: string): Promise<{ executionId: string; approvalId: string }> {
  const { execution_id } = await post("/api/execute", { path: "inbox/release", workload: { version } });
  const executionId = String(execution_id);
  for (;;) {
    const { approvals } = (await get(`/api/approvals?execution_id=${executionId}`)) as {
      approvals: { approval_id: string }[];
    };
    const [approval] = approvals;
    if (approval !== undefined) return { executionId, approvalId: approval.approval_id };
    // The answer comes with the next event.
    await get(`/api/executions/${executionId}/result?wait_ms=50`);
  }
}

async function get(path: string): Promise<Record<string, unknown>> {
  return (await (await fetch(`${serving.url}${path}`)).json()) as Record<string, unknown>;
}

test("a run that asks people leads to the inbox, where the form is filled in and the run goes on", async (t) => {
  const { executionId, approvalId } = await asked("2.4.0");
  const page = await opened(`/executions/${executionId}`);
  await page.getByText("Waiting for approval: Release 2.4.0?").waitFor();
  await page.getByRole("link", { name: "Decide …" }).first().click();
  await page.waitForURL(new RegExp(`/inbox\\?approval=${approvalId}`));
  await page.getByText("CHANGELOG.md").waitFor();
  // Markup of an author is text.
  await page.getByText("<img src=x").waitFor();
  await page.getByText("Escalates to the role head_of_ops").waitFor();
  await page.getByRole("link", { name: /^Inbox.*waiting for you/ }).waitFor();
  await assertViewsUsable(t, page, [
    [`/inbox?approval=${approvalId}`, "The changes are in"],
    ["/inbox?view=expired", "No approval has expired"],
  ]);
  await page.goto(`${serving.url}/inbox?approval=${approvalId}`);
  await page.getByLabel("share").fill("120");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("window is required").waitFor();
  await page.getByText(/^share .*100/).waitFor();
  await page.getByLabel("window").selectOption("tonight");
  await page.getByLabel("share").fill("50");
  await page.getByLabel("Comment").fill("after the backup");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Approved by operator").waitFor();
  await page.getByText("after the backup").waitFor();
  assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
  const { result } = await get(`/api/executions/${executionId}/result?wait_ms=20000`);
  assert.deepEqual(result, { outcome: "approved", data: { window: "tonight", share: 50 } });
  await page.close();
});

test("a rejection needs no form; what another person decided meanwhile is told", async () => {
  const rejected = await asked("2.5.0");
  const page = await opened(`/inbox?approval=${rejected.approvalId}`);
  await page.getByLabel("Comment").fill("no changelog");
  await page.getByRole("button", { name: "Reject" }).click();
  await page.getByText("Rejected by operator").waitFor();
  const { result } = await get(`/api/executions/${rejected.executionId}/result?wait_ms=20000`);
  assert.equal((result as { outcome: string }).outcome, "rejected");
  const late = await asked("2.6.0");
  await page.goto(`${serving.url}/inbox?approval=${late.approvalId}`);
  await page.getByLabel("window").selectOption("now");
  await post(`/api/approvals/${late.approvalId}/decide`, { decision: "reject" });
  // The browser logs the refusal.
  page.removeAllListeners("console");
  await page.getByRole("button", { name: "Approve" }).click();
  const alert = page.getByRole("alert");
  await alert.getByText(/closed|decided already/).waitFor();
  // It is closed: the form is gone, and what was refused still stands there.
  await page.getByText("Rejected by operator").waitFor();
  await page.getByRole("button", { name: "Approve" }).waitFor({ state: "detached" });
  assert.equal(await alert.count(), 1);
  await page.close();
});
