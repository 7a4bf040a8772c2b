import type { ApprovalAnswer } from "../../schema/api/waits/approvals.ts";
import { APPROVAL_ROUTES } from "../../schema/routes/steering.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliAction, type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { readJson } from "../documents/inputs.ts";
import { openServer } from "../server/open-server.ts";
import { printAnswer, printJson } from "../terminal/print-answer.ts";
import { cleanText, jsonText, plural } from "../terminal/text.ts";

/** `flow approvals list`: approvals, newest first. */
export async function listApprovals(input: CliInput): Promise<number> {
  const { options } = input;
  const server = await openServer(input);
  const query = defined({
    mine: options["mine"] === true ? ("true" as const) : undefined,
    status: textOption(options, "status") as ApprovalAnswer["status"] | undefined,
    execution_id: textOption(options, "execution"),
    limit: textOption(options, "limit"),
  });
  const answer = await server.call(APPROVAL_ROUTES.list, { query });
  const lines = answer.approvals.map((one) => `${lineOf(one)}\n`);
  const more = answer.next_cursor === null ? "" : "… and more: --limit lists up to 500\n";
  const none = options["mine"] === true ? "Nothing waits for you\n" : "There are no approvals\n";
  return printLines(input, answer, lines.length === 0 ? none : `${lines.join("")}${more}`);
}

/** The text is clean, line by line. */
function printLines(input: CliInput, answer: unknown, text: string): number {
  if (input.options["json"] === true) return printJson(input, answer);
  input.io.stdout.write(text);
  return EXIT.ok;
}

/** `7212  open       Release 7?  (team/release, until 2026-01-31T12:00:00.000Z)`. */
function lineOf({ approval_id: id, status, title, path, due }: ApprovalAnswer): string {
  const until = status === "open" && due !== undefined ? `, until ${due}` : "";
  return `${id}  ${status.padEnd(9)}  ${cleanText(title)}  (${cleanText(path)}${until})`;
}

/** `flow approvals show`: one approval. */
export async function showApproval(input: CliInput): Promise<number> {
  const server = await openServer(input);
  const answer = await server.call(APPROVAL_ROUTES.detail, { params: { approval_id: idOf(input) } });
  return printLines(input, answer, textOf(answer));
}

function textOf(approval: ApprovalAnswer): string {
  const { approval_id: id, status, title, description, form, decisions, path, step, due } = approval;
  const lines = [
    `${cleanText(title)}`,
    `Approval ${id}: ${status}${status === "open" ? `, ${neededOf(approval)}` : ""}`,
    `Of step '${cleanText(step)}' of ${cleanText(path)}, execution ${approval.execution_id}`,
    `Decided by ${cleanText(approversOf(approval))}`,
    ...(due === undefined ? [] : [`Until ${due}`]),
    ...(description === undefined ? [] : ["", ...description.split("\n").map(cleanText)]),
    ...(form === undefined ? [] : ["", `Form: ${jsonText(form)}`]),
    ...(decisions.length === 0 ? [] : [""]),
    ...decisions.map(({ decision, by, at, comment, data }) => {
      const said = comment === undefined ? "" : `: ${cleanText(comment)}`;
      return `${at}  ${decision} by ${cleanText(by)}${said}${data === undefined ? "" : `  ${jsonText(data)}`}`;
    }),
    ...(approval.may_decide ? ["", `Next: flow approvals approve ${id}, or flow approvals reject ${id}`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function neededOf({ required, decisions }: ApprovalAnswer): string {
  const given = decisions.filter(({ decision }) => decision === "approve").length;
  return `${given} of ${plural(required, "approval")}`;
}

function approversOf({ approvers: { roles, users, not_starter, who_may_execute } }: ApprovalAnswer): string {
  const names = [
    ...roles.map((role) => `role ${role}`),
    ...users,
    ...(who_may_execute ? ["users who may execute the playbook"] : []),
  ];
  return `${names.join(", ")}${not_starter ? "; not the person who started the execution" : ""}`;
}

/** `flow approvals approve` and `reject`. */
export function decideApproval(decision: "approve" | "reject"): CliAction {
  return async (input) => {
    const { options, io } = input;
    const id = idOf(input);
    const given = textOption(options, "data");
    const data = given === undefined ? undefined : await readJson(given, io.folder, "data");
    const server = await openServer(input);
    const body = { decision, ...defined({ data, comment: textOption(options, "comment") }) };
    const answer = await server.call(APPROVAL_ROUTES.decide, { params: { approval_id: id }, body });
    const what =
      answer.status === "open"
        ? "recorded; it stays open until enough people have decided"
        : `${answer.status}: execution ${answer.execution_id} goes on`;
    return printAnswer(input, answer, `Approval ${id}: ${what}`);
  };
}

/** Throws `FlowError` USAGE. */
function idOf({ arguments: [id = ""] }: CliInput): string {
  if (/^[1-9]\d{0,15}$/.test(id)) return id;
  throw new FlowError("USAGE", `An approval is named by its id, a number; got '${id}'. 'flow approvals list' has them`);
}
