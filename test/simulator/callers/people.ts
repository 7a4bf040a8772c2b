import { callUntilAnswered } from "../../../src/adapters/server/retry.ts";
import { APPROVAL_ROUTES } from "../../../src/schema/routes/steering.ts";
import { fromRecord } from "../../../src/schema/rules/event-record.ts";
import type { ApprovalDecision } from "../../../src/schema/words/approval.ts";
import { ERROR_STATUS, FlowError } from "../../../src/schema/words/errors.ts";
import type { EventOf } from "../../../src/schema/words/event.ts";
import type { Random } from "../random.ts";
import type { Tables } from "../tables.ts";

/** A decision that a server has taken, as it told the person. */
export interface TakenDecision {
  executionId: string;
  approvalId: string;
  by: string;
}

/** What people need. */
export interface PeopleParts {
  tables: Tables;
  random: Random;
  sleep(ms: number): Promise<void>;
  retry: Parameters<typeof callUntilAnswered>[0];
  limits: { timeoutMs: number; signal: AbortSignal };
  work(what: () => Promise<unknown>): void;
}

/** Three log in; one has links, of which each message has another. */
const PEOPLE = ["ann", "bob", "cem", "link:dee"];

/** What everybody says: the first draft is pushed back, each later one is approved. */
export function sayingOf(title: string): ApprovalDecision["decision"] {
  return Number(title) < 2 ? "reject" : "approve";
}

/**
 * People who decide over what an execution asks, through any of the servers: each looks now and then, some at the same moment, some twice, some
 * when it is over, and all once more when the execution has ended. What servers have taken is noted.
 */
export function peopleOf(parts: PeopleParts, taken: TakenDecision[]): (executionId: string) => void {
  const { tables, random, sleep, work } = parts;
  const decide = async (executionId: string, { approval_id: approvalId }: Opened, title: string, by: string) => {
    const link = by.startsWith("link:") ? { link: random.between(1, 3) } : {};
    const body = { decision: sayingOf(title), by, execution_id: executionId, ...link } as never;
    const input = { params: { approval_id: approvalId }, body, ...parts.limits };
    try {
      await callUntilAnswered(parts.retry, APPROVAL_ROUTES.decide, input);
      taken.push({ executionId, approvalId, by });
    } catch (error) {
      // It is closed, or the first of two has arrived: also where its answer was lost.
      if (!(error instanceof FlowError && REFUSALS.has(ERROR_STATUS[error.code]))) throw error;
    }
  };
  const person = async (executionId: string, by: string) => {
    const seen = new Set<string>();
    for (;;) {
      await sleep(random.between(500, 9_000));
      const isOver = tables.store.executions.get(executionId)?.endedAt != null;
      for (const [opened, title] of openedIn(tables, executionId)) {
        if (seen.has(opened.approval_id) && !isOver) continue;
        seen.add(opened.approval_id);
        const tries = random.chance(0.3) ? 2 : 1;
        await Promise.all(Array.from({ length: tries }, () => decide(executionId, opened, title, by)));
      }
      if (isOver) return;
    }
  };
  return (executionId) => {
    for (const by of PEOPLE) work(() => person(executionId, by));
  };
}

/** Over the limit of what is asked: closed, decided before, or a link that was used. Unknown: a copy of a rerun's original. */
const REFUSALS: ReadonlySet<number> = new Set([404, 409, 410]);

type Opened = EventOf<"approval.opened">;

/** The approvals of an execution in their order, with their titles. */
function openedIn({ store }: Tables, executionId: string): [Opened, string][] {
  const events = (store.events.get(executionId) ?? []).filter(({ event_type }) =>
    /^(?:approval|command)\./.test(event_type),
  );
  const titles = new Map<string, string>();
  const found: [Opened, string][] = [];
  for (const event of events.map(fromRecord)) {
    if (event.type === "command.parked" && event.wait.kind === "approval")
      titles.set(event.command_id, event.wait.title);
    if (event.type === "approval.opened") found.push([event, titles.get(event.command_id) ?? ""]);
  }
  return found;
}
