import { decidedBefore } from "../../engine/decide/approvals.ts";
import type { ApprovalLink, ApprovalLinks } from "../../platform/crypto/approval-links.ts";
import {
  type ApprovalFilter,
  type ApprovalReader,
  type ApprovalRow,
  findApproval,
  listApprovals,
} from "../../repositories/approvals/approvals.ts";
import { findMessage, listMessages, type MessageRow } from "../../repositories/approvals/messages.ts";
import type { Database } from "../../repositories/database/database.ts";
import { decideUserAccess, pathRules } from "../../schema/rules/access-rules.ts";
import { type ApprovalDecision, type ApprovalStatus, LINK_OF } from "../../schema/words/approval.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import type { CallingUser } from "../access/access.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";
import { encodeCursor, idCursor } from "../pagination-cursor.ts";

/** Who looks at approvals or decides: a user; or the operator's token, as one person. */
export interface Person {
  /** As the audit log names them. */
  by: string;
  user: CallingUser | undefined;
}

/** What a person says about an approval. */
export interface Saying {
  decision: ApprovalDecision["decision"];
  data?: Json;
  comment?: string;
}

/** An approval as a person may see it. */
export interface ShownApproval {
  row: ApprovalRow;
  /** They may decide, and have not. */
  mayDecide: boolean;
  /** They may view the playbook: of data that others gave too. */
  mayView: boolean;
}

/** Approvals for which executions wait. */
export interface Approvals {
  list(filter: ApprovalQuery, page: PageQuery, person: Person): Promise<Listed<ShownApproval>>;
  /** Throws `FlowError` NOT_FOUND, FORBIDDEN for who may neither decide nor view the playbook. */
  find(approvalId: string, person: Person): Promise<ShownApproval>;
  /**
   * Resolves with what the approval has come to, when that is durable. Throws `FlowError` NOT_FOUND; FORBIDDEN for who may not decide;
   * CONFLICT for a closed one, and for a person who has decided; INVALID_INPUT for data that do not fit the form.
   */
  decide(approvalId: string, saying: Saying, person: Person): Promise<{ row: ApprovalRow; status: ApprovalStatus }>;
  /** The messages about an approval that were sent or are to be, the newest {@link MESSAGES_LISTED}. */
  messages(approvalId: string): Promise<MessageRow[]>;
  /**
   * What a link leads to; nothing is used up. `person`: who is logged in, if someone is. Throws `FlowError` NOT_FOUND for a link that is
   * forged, or whose approval is gone; UNAUTHENTICATED and FORBIDDEN where people have to be logged in.
   */
  look(token: string, person: Person | undefined): Promise<LinkedApproval>;
  /** The same decision by a link, which it uses up. Throws as {@link look} and {@link decide} do, and {@link LinkedApproval.over}. */
  decideByLink(linked: LinkedApproval, saying: Saying, person: Person | undefined): Promise<ApprovalStatus>;
}

/** What the link of a message leads to. */
export interface LinkedApproval {
  row: ApprovalRow;
  link: ApprovalLink;
  /** Whose it is; null: that of everybody who has the message. */
  to: string | null;
  /** Why it cannot be used any more, with code GONE, and what to do next; undefined: it can. */
  over: FlowError | undefined;
}

/** Which approvals are asked for. */
export type ApprovalQuery = Pick<ApprovalFilter, "status" | "executionId" | "mine">;

/** What approvals need. */
export interface ApprovalsDeps {
  database: Database;
  orchestrator: Pick<Orchestrator, "decide">;
  links: Pick<ApprovalLinks, "linkOf">;
  /** Milliseconds since 1970. */
  now(): number;
}

/** How long a link can be used, if the approval is open for so long (control, rule 30). */
export const LINK_DAYS = 7;
/** Messages about an approval that are shown. */
export const MESSAGES_LISTED = 50;

/** The approvals of a database. */
export function createApprovals({ database, orchestrator, links, now }: ApprovalsDeps): Approvals {
  const known = async (approvalId: string) => {
    const row = await findApproval(database, approvalId);
    if (row === undefined) throw new FlowError("NOT_FOUND", `There is no approval ${approvalId}`);
    return row;
  };
  const take = async (row: ApprovalRow, saying: Saying, by: string, link?: number) => {
    if (row.status !== "open") throw conflict(row, `it is closed (${row.status})`);
    if (decidedBefore(row.decisions, by, link))
      throw conflict(row, "this person has decided already, or the link was used");
    await checkData(row, saying);
    const { approvalId, executionId, commandId } = row;
    return await orchestrator.decide({ approvalId, executionId, commandId }, { ...saying, by, ...defined({ link }) });
  };
  return {
    async list(query, { limit, cursor }, person) {
      const key = cursor === undefined ? {} : { cursor: idCursor(cursor) };
      const filter = { ...query, by: person.by, reader: readerOf(person) };
      const { items, next } = await listApprovals(database, filter, { limit, ...key });
      const shown = items.map((row) => shownTo(row, person));
      return {
        items: query.mine === true ? shown.filter(({ mayDecide }) => mayDecide) : shown,
        nextCursor: next === undefined ? null : encodeCursor(next),
      };
    },
    async find(approvalId, person) {
      const shown = shownTo(await known(approvalId), person);
      if (shown.mayView || isApprover(shown.row, person)) return shown;
      throw new FlowError(
        "FORBIDDEN",
        `${person.by} may not look at approval ${approvalId}: they are not among its approvers, and may not view its playbook`,
      );
    },
    async decide(approvalId, saying, person) {
      const row = await known(approvalId);
      checkPerson(row, person);
      return { row, status: await take(row, saying, person.by) };
    },
    messages: (approvalId) => listMessages(database, approvalId, MESSAGES_LISTED),
    async look(token, person) {
      const link = links.linkOf(token);
      const row = link === undefined ? undefined : await findApproval(database, link.approvalId);
      const message = link === undefined ? undefined : await findMessage(database, link);
      if (link === undefined || row === undefined || message === undefined) throw noLink();
      if (row.linkLogin && person === undefined) throw needsLogin();
      if (row.linkLogin && person !== undefined) checkPerson(row, person);
      const { madeAt, to } = message;
      return { row, link, to, over: whyOver(row, link, { madeAt, now: now() }) };
    },
    async decideByLink({ row, link, to, over }, saying, person) {
      if (over !== undefined) throw over;
      const holder = to === null ? "link" : `${LINK_OF}${to}`;
      const by = row.linkLogin && person !== undefined ? person.by : holder;
      return await take(row, saying, by, link.number);
    },
  };
}

/** See {@link LinkedApproval.over}. */
function whyOver(row: ApprovalRow, link: ApprovalLink, times: { madeAt: Date; now: number }): FlowError | undefined {
  const state = stateOf(row, link, times);
  if (state === "open") return undefined;
  const message = state === "closed" ? `Nothing is left to be decided: it is ${row.status}` : OVER[state];
  return new FlowError("GONE", message, { detail: { link: state, status: row.status } });
}

const OVER = {
  used: "This link was used, and the decision is recorded. Who is to decide differently can only say so to those who run the playbook",
  expired:
    "This link has expired. Wait for the next reminder, or log in to the page of this installation and decide in the inbox",
} as const;

function stateOf(
  { status, decisions, dueAt }: ApprovalRow,
  { number }: ApprovalLink,
  { madeAt, now }: { madeAt: Date; now: number },
): "open" | "used" | "closed" | "expired" {
  if (decisions.some(({ link }) => link === number)) return "used";
  if (status !== "open") return "closed";
  const end = Math.min(madeAt.getTime() + LINK_DAYS * 86_400_000, dueAt?.getTime() ?? Number.POSITIVE_INFINITY);
  return now < end ? "open" : "expired";
}

function noLink(): FlowError {
  return new FlowError("NOT_FOUND", "There is no such link. Copy the whole address from the message");
}

function needsLogin(): FlowError {
  const message =
    "People decide here who are logged in. Log in on the page of this installation, then open the link again";
  return new FlowError("UNAUTHENTICATED", message);
}

function shownTo(row: ApprovalRow, person: Person): ShownApproval {
  const isOpen = row.status === "open" && !decidedBefore(row.decisions, person.by, undefined);
  return {
    row,
    mayDecide: isOpen && isApprover(row, person) && !isExcluded(row, person),
    mayView: person.user === undefined || decideUserAccess(person.user, "view", row.path).allowed,
  };
}

/** Throws `FlowError` FORBIDDEN for who may not decide (control, rule 28). */
function checkPerson(row: ApprovalRow, person: Person): void {
  const refused = (why: string) =>
    new FlowError("FORBIDDEN", `${person.by} may not decide over approval ${row.approvalId}: ${why}`);
  if (!isApprover(row, person)) throw refused("they are not among its approvers");
  if (isExcluded(row, person)) throw refused("they have started the execution, and another person must decide");
}

function isApprover({ approvers, byPath, path }: ApprovalRow, { user }: Person): boolean {
  if (user === undefined) return true;
  if (namesOf(user).some((name) => approvers.includes(name))) return true;
  return byPath && decideUserAccess(user, "execute", path).allowed;
}

/** Who has started the execution, where that person may not decide. */
function isExcluded({ notStarter, starter }: ApprovalRow, { user }: Person): boolean {
  return notStarter && starter === (user === undefined ? "operator" : String(user.userId));
}

function namesOf({ roles, email }: CallingUser): string[] {
  return [...roles.map((role) => `role:${role}`), `user:${email.toLowerCase()}`];
}

function readerOf({ by, user }: Person): ApprovalReader | undefined {
  if (user === undefined) return undefined;
  const { playbooks } = user;
  return { by, names: namesOf(user), view: pathRules(playbooks, "view"), execute: pathRules(playbooks, "execute") };
}

/** Throws `FlowError` INVALID_INPUT with every problem. A rejection needs no data. */
async function checkData({ form, approvalId }: ApprovalRow, { decision, data }: Saying): Promise<void> {
  if (form === null || (decision === "reject" && data === undefined)) return;
  const { problemsWithData } = await import("../../platform/json-schema.ts");
  const problems = problemsWithData(form, data ?? {});
  if (problems.length === 0) return;
  const told = problems
    .map(({ path, message }) => (path === "" ? `data ${message}` : `${path}: ${message}`))
    .join("; ");
  throw new FlowError(
    "INVALID_INPUT",
    `Approval ${approvalId} was not decided: the form's data are not valid: ${told}`,
    {
      detail: { errors: problems.map((problem) => ({ ...problem })) },
    },
  );
}

function conflict({ approvalId, executionId }: ApprovalRow, why: string): FlowError {
  const message = `Approval ${approvalId} was not decided: ${why}`;
  return new FlowError("CONFLICT", message, { detail: { approval_id: approvalId, execution_id: executionId } });
}
