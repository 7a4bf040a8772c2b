import type { ApprovalChange, ApprovalMessage, ExecutionChange, StartedFire } from "../../ports/execution-store.ts";
import type { ApprovalDecision, People } from "../../schema/words/approval.ts";
import { type BulkColumn, column, columns } from "../database/bulk-columns.ts";
import { approval, approvalDecision, approvalMessage } from "../tables/approval.ts";
import { triggerFire } from "../tables/trigger.ts";

/*
 * The parts of a flush that most rounds have nothing of, rows, columns, and text: approvals, and fires of triggers.
 */

/** An approval that is opened. */
interface OpenedRow extends Pick<ApprovalChange, "approvalId" | "outcome"> {
  executionId: string;
  path: string;
  opened: NonNullable<ApprovalChange["opened"]>;
  approvers: string[];
}

/** What changes of an approval that an earlier round has opened. */
interface ChangedRow extends Pick<ApprovalChange, "approvalId" | "outcome" | "escalatedTo"> {
  executionId: string;
}

type DecisionRow = ApprovalDecision & { executionId: string; approvalId: string };
type MessageRow = ApprovalMessage & { executionId: string };

type Changes = readonly ExecutionChange[];

/** Approvals that are opened. */
export function openedApprovals(executions: Changes): OpenedRow[] {
  return executions.flatMap(({ executionId, path, approvals = [] }) =>
    approvals.flatMap(({ approvalId, opened, outcome, escalatedTo }) => {
      if (opened === undefined) return [];
      const approvers = [opened.request.approvers ?? {}, escalatedTo ?? {}].flatMap(approverNames);
      return [{ ...{ executionId, path, approvalId, opened, approvers }, ...(outcome !== undefined && { outcome }) }];
    }),
  );
}

/** Approvals of earlier rounds that are escalated or closed. */
export function changedApprovals(executions: Changes): ChangedRow[] {
  return executions.flatMap(({ executionId, approvals = [] }) =>
    approvals
      .filter(({ opened, outcome, escalatedTo }) => opened === undefined && (outcome ?? escalatedTo) !== undefined)
      .map((change) => ({ executionId, ...change })),
  );
}

/** What people have said. */
export function givenDecisions(executions: Changes): DecisionRow[] {
  return executions.flatMap(({ executionId, approvals = [] }) =>
    approvals.flatMap(({ approvalId, decisions }) =>
      decisions.map((decision) => ({ executionId, approvalId, ...decision })),
    ),
  );
}

/** Messages that are to be sent. */
export function newMessages(executions: Changes): MessageRow[] {
  return executions.flatMap(({ executionId, messages = [] }) =>
    messages.map((message) => ({ executionId, ...message })),
  );
}

/** Names of people as the table has them. */
export function approverNames({ roles = [], users = [] }: People): string[] {
  return [...roles.map((role) => `role:${role}`), ...users.map((user) => `user:${user.toLowerCase()}`)];
}

const flag = (is: boolean | undefined) => (is === true ? 1 : 0);

/** Columns of {@link openedApprovals}. */
export const OPENED_COLUMNS: readonly BulkColumn<OpenedRow>[] = [
  ...columns<typeof approval, OpenedRow>(approval, {
    approvalId: ({ approvalId }) => approvalId,
    executionId: ({ executionId }) => executionId,
    commandId: ({ opened }) => opened.commandId,
    step: ({ opened }) => opened.step,
    iteration: ({ opened }) => opened.iteration,
    path: ({ path }) => path,
    title: ({ opened }) => opened.request.title,
    description: ({ opened }) => opened.request.description,
    form: ({ opened }) => opened.request.form,
    approvers: ({ approvers }) => approvers,
    required: ({ opened }) => opened.request.required,
    rejections: ({ opened }) => opened.request.rejections,
    status: ({ outcome }) => outcome ?? "open",
  }),
  column("is_by_path", "smallint", ({ opened: { request } }: OpenedRow) => flag(isByPath(request.approvers))),
  column("is_not_starter", "smallint", ({ opened: { request } }: OpenedRow) => flag(request.approvers?.not_starter)),
  column("is_link_login", "smallint", ({ opened: { request } }: OpenedRow) => flag(request.link_login)),
  column("due_ms", "float8", ({ opened }: OpenedRow) => opened.dueAt),
];

/** No person is named: users who may execute the playbook decide. */
function isByPath(people: People | undefined): boolean {
  return people?.roles === undefined && people?.users === undefined;
}

/** Columns of {@link changedApprovals}. */
export const CHANGED_COLUMNS: readonly BulkColumn<ChangedRow>[] = [
  ...columns<typeof approval, ChangedRow>(approval, {
    approvalId: ({ approvalId }) => approvalId,
    executionId: ({ executionId }) => executionId,
    approvers: ({ escalatedTo }) => approverNames(escalatedTo ?? {}),
    status: ({ outcome }) => outcome,
  }),
];

/** Columns of {@link givenDecisions}. */
export const DECISION_COLUMNS: readonly BulkColumn<DecisionRow>[] = [
  column("execution_id", "bigint", ({ executionId }: DecisionRow) => executionId),
  ...columns<typeof approvalDecision, DecisionRow>(approvalDecision, {
    approvalId: ({ approvalId }) => approvalId,
    decidedBy: ({ by }) => by,
    decision: ({ decision }) => decision,
    decidedAt: ({ at }) => at,
    data: ({ data }) => data,
    comment: ({ comment }) => comment,
    link: ({ link }) => link,
  }),
];

/** Columns of {@link newMessages}. */
export const MESSAGE_COLUMNS: readonly BulkColumn<MessageRow>[] = [
  column("execution_id", "bigint", ({ executionId }: MessageRow) => executionId),
  ...columns<typeof approvalMessage, MessageRow>(approvalMessage, {
    approvalId: ({ approvalId }) => approvalId,
    number: ({ number }) => number,
    addressee: ({ to }) => to,
    playbook: ({ playbook }) => playbook,
    input: ({ input }) => input,
  }),
];

/** What a queued fire has come to. */
interface OutcomeRow {
  executionId: string;
  fireId: string;
}

type FireRow = StartedFire & { executionId: string };

/** Queued fires whose executions begin. */
export function fireOutcomes(executions: Changes): OutcomeRow[] {
  return executions.flatMap(({ executionId, start: { fireId } = {} }) =>
    fireId === undefined ? [] : [{ executionId, fireId }],
  );
}

/** Fires that are written with their executions. */
export function newFires(executions: Changes): FireRow[] {
  return executions.flatMap(({ executionId, start: { newFire } = {} }) =>
    newFire === undefined ? [] : [{ executionId, ...newFire }],
  );
}

/** Columns of {@link fireOutcomes}. */
export const OUTCOME_COLUMNS: readonly BulkColumn<OutcomeRow>[] = columns<typeof triggerFire, OutcomeRow>(triggerFire, {
  executionId: (row) => row.executionId,
  fireId: (row) => row.fireId,
});

/** Columns of {@link newFires}. */
export const FIRE_COLUMNS: readonly BulkColumn<FireRow>[] = [
  ...columns<typeof triggerFire, FireRow>(triggerFire, {
    executionId: (row) => row.executionId,
    fireId: (row) => row.fireId,
    triggerId: (row) => row.triggerId,
    key: (row) => row.key,
    causeId: (row) => row.causeId,
  }),
  column("due_ms", "float8", (row: FireRow) => row.dueAt),
  column("fired_ms", "float8", (row: FireRow) => row.firedAt),
  column("is_always", "smallint", (row: FireRow) => (row.always ? 1 : 0)),
];

/** Where the rows are, and the condition under which they are written. */
interface RowPlaces {
  rowsOf(
    table: "approvals" | "approvalChanges" | "approvalDecisions" | "approvalMessages" | "fired" | "newFires",
  ): string;
  written: string;
}

// Approvals are protected by the lock on the execution, as is the fire that is written with it.

/** Writes {@link openedApprovals}. */
export const openApprovals = ({ rowsOf, written }: RowPlaces) => `
  insert into flow.approval (approval_id, execution_id, command_id, step, iteration, path, title, description, form,
    approvers, by_path, not_starter, required, rejections, link_login, status, due_at, closed_at)
  select approval_id, execution_id, command_id, step, iteration, path, title, description, form,
    approvers, is_by_path = 1, is_not_starter = 1, required, rejections, is_link_login = 1, status,
    to_timestamp(due_ms / 1000), case when status <> 'open' then now() end
  from ${rowsOf("approvals")} as t
  where ${written}`;

/** Writes {@link changedApprovals}. */
export const changeApprovals = ({ rowsOf, written }: RowPlaces) => `
  update flow.approval as a set
    approvers = a.approvers || t.approvers,
    status = coalesce(t.status, a.status),
    closed_at = case when t.status is not null then now() else a.closed_at end
  from ${rowsOf("approvalChanges")} as t
  where a.approval_id = t.approval_id and a.closed_at is null and ${written}`;

/** Writes {@link givenDecisions}. */
export const keepDecisions = ({ rowsOf, written }: RowPlaces) => `
  insert into flow.approval_decision (approval_id, decided_by, decision, decided_at, data, comment, link)
  select approval_id, decided_by, decision, decided_at, data, comment, link
  from ${rowsOf("approvalDecisions")} as t
  where ${written}`;

/** Writes {@link newMessages}. */
export const keepMessages = ({ rowsOf, written }: RowPlaces) => `
  insert into flow.approval_message (approval_id, number, addressee, playbook, input)
  select approval_id, number, addressee, playbook, input
  from ${rowsOf("approvalMessages")} as t
  where ${written}`;

/** Writes {@link fireOutcomes}. One that has an outcome keeps it. */
export const endFires = ({ rowsOf, written }: RowPlaces) => `
  update flow.trigger_fire as f
  set status = 'started', execution_id = t.execution_id, reason = null, wake_at = null, input = null
  from ${rowsOf("fired")} as t
  where f.fire_id = t.fire_id and f.status = 'queued' and ${written}`;

/** Writes {@link newFires}. A key that its trigger has fired for refuses the flush: of two servers that take one delivery one starts it. */
export const insertFires = ({ rowsOf, written }: RowPlaces) => `
  insert into flow.trigger_fire (fire_id, trigger_id, key, due_at, fired_at, status, execution_id, always, cause_id)
  select fire_id, trigger_id, key, to_timestamp(due_ms / 1000), to_timestamp(fired_ms / 1000), 'started', execution_id,
    is_always = 1, cause_id
  from ${rowsOf("newFires")} as t
  where ${written}`;
