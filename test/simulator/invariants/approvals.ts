import assert from "node:assert/strict";
import { fromRecord } from "../../../src/schema/rules/event-record.ts";
import type { Simulation } from "../simulate.ts";

/** Approvals by the log: no person counts twice, nothing is decided after the end, and what a server has taken is there once. */
export function assertApprovals({ tables: { store }, taken }: Simulation): void {
  const decided = new Map<string, number>();
  for (const log of store.events.values()) {
    const closed = new Set<string>();
    const links = new Set<string>();
    for (const event of log.filter(({ event_type: type }) => type.startsWith("approval.")).map(fromRecord)) {
      if (event.type === "approval.closed") {
        assert.ok(!closed.has(event.approval_id), `Approval ${event.approval_id} is closed twice`);
        closed.add(event.approval_id);
      }
      if (event.type !== "approval.decided") continue;
      const { approval_id: id, by, link } = event;
      assert.ok(!closed.has(id), `${by} has decided over approval ${id} after its end`);
      decided.set(`${id}/${by}`, (decided.get(`${id}/${by}`) ?? 0) + 1);
      assert.equal(decided.get(`${id}/${by}`), 1, `${by} counts twice for approval ${id}`);
      if (link === undefined) continue;
      assert.ok(!links.has(`${id}/${link}`), `Link ${link} of approval ${id} was used twice`);
      links.add(`${id}/${link}`);
    }
  }
  for (const { approvalId, by } of taken)
    assert.equal(decided.get(`${approvalId}/${by}`), 1, `A server took what ${by} said of ${approvalId}, and lost it`);
}
