import type { LocalPlaybook } from "../../local/catalog.ts";
import { shown } from "../../local/catalog.ts";
import { isJsonObject } from "../../schema/words/json.ts";
import type { TaskError, TaskErrorKind } from "../../schema/words/outcome.ts";
import type { Style } from "../terminal/style.ts";
import { cleanText, plural } from "../terminal/text.ts";
import { loopProgress } from "./lines.ts";
import type { ExecutionRow } from "./run-model.ts";

/** Lines of one cause that are printed: a traceback is, a page of HTML is not. */
const CAUSE_LINES_MAX = 20;
/** Sub-playbooks within sub-playbooks that are named: the outer ones and the innermost. */
const WITHIN_ROWS_MAX = 5;

/**
 * Where and why it failed, and what to do next: the step and its line in the document, the task and its attempt, the cause, and
 * for a sub-playbook the same of the failure within it.
 */
export function failureLines(
  run: ExecutionRow,
  playbook: LocalPlaybook | undefined,
  style: Style,
  where: RunLocation = HERE,
): string[] {
  const { error } = run.state;
  if (error === null) return [];
  const rows = locationRows(error, playbook, run);
  const within = failuresWithin(run, error);
  rows.push(...withinRows(within));
  const root = within.at(-1)?.error ?? error;
  rows.push(["cause", `${root.message} (${root.kind}${root.code === "" ? "" : `, ${root.code}`})`]);
  rows.push(["next", hintFor(root, where)]);
  if (where.again !== undefined && run.state.status === "FAILED") rows.push(["then", where.again]);
  return rows.flatMap(([label, text]) => labelled(label, text, style));
}

function locationRows(
  error: TaskError,
  playbook: LocalPlaybook | undefined,
  run: ExecutionRow,
): [label: string, text: string][] {
  const rows: [string, string][] = [];
  if (error.step === undefined) return rows;
  const step = playbook?.program.steps.get(error.step)?.step;
  const at = (position: { line: number } | undefined) =>
    position === undefined || playbook === undefined ? "" : ` at ${shown(playbook.file)}:${position.line}`;
  const loop = run.byName.get(error.step)?.state.loop;
  const iterations = loop == null ? "" : `, iterations ${loopProgress(loop)}`;
  rows.push(["step", `${error.step}${at(step?.position)}${iterations}`]);
  if (error.task === undefined) return rows;
  const task = step?.tasks.find((candidate) => candidate.label === error.task);
  const kind = task === undefined ? "" : ` (${task.kind})`;
  const attempt = error.attempt === undefined ? "" : `, attempt ${error.attempt}`;
  rows.push(["task", `${error.task}${kind}${at(task?.position)}${attempt}`]);
  return rows;
}

function withinRows(within: readonly InnerFailure[]): [label: string, text: string][] {
  const texts = within.map(({ path, error }) => `${cleanText(path)}, ${describeError(error)}`);
  const hidden = texts.length - WITHIN_ROWS_MAX;
  if (hidden > 0) texts.splice(WITHIN_ROWS_MAX - 1, hidden, `… ${plural(hidden, "more sub-playbook")}`);
  return texts.map((text) => ["within", text]);
}

interface InnerFailure {
  path: string;
  error: TaskError;
}

/** From one `sub_playbook` error to the next: what failed in the sub-playbook, and in its own. */
function failuresWithin(run: ExecutionRow, error: TaskError): InnerFailure[] {
  const found: InnerFailure[] = [];
  let execution = run;
  let current = error;
  while (current.kind === "sub_playbook" && current.step !== undefined) {
    const child = execution.byName.get(current.step)?.lastChild;
    const inner = child?.state.error;
    if (child === undefined || inner == null) break;
    found.push({ path: child.state.path, error: inner });
    execution = child;
    current = inner;
  }
  return found;
}

function describeError(error: TaskError): string {
  const step = error.step === undefined ? "" : `step ${cleanText(error.step)}`;
  const task = error.task === undefined ? "" : `, task ${cleanText(error.task)}`;
  const attempt = error.attempt === undefined ? "" : `, attempt ${error.attempt}`;
  return `${step}${task}${attempt}`;
}

function labelled(label: string, text: string, style: Style): string[] {
  const all = text.split("\n").map(cleanText);
  const lines = all.slice(0, CAUSE_LINES_MAX);
  if (all.length > lines.length) lines.push("…");
  return lines.map((line, index) => `  ${style.dim((index === 0 ? label : "").padEnd(7))} ${line}`);
}

/** Where a run took place: what can be done about its failure differs. */
export interface RunLocation {
  /** Where its credentials come from. */
  credentials: string;
  /** How to see more of it. */
  more: string;
  /** How to go on with it once the cause is gone, where its results are kept. */
  again?: string;
  /** How to see more of a sub-playbook of it, by the id of its execution. */
  moreOf?(childId: string): string;
}

const HERE: RunLocation = {
  credentials: "--credentials FILE, FLOW_CREDENTIALS_FILE or FLOW_CREDENTIAL_<NAME>",
  more: "--verbose shows every task, --record FILE keeps every event",
};

/** An execution on a server. */
export function serverLocation(executionId: string): RunLocation {
  return {
    credentials: "the server's, not those of this machine",
    more: `'flow events ${executionId}' lists every event`,
    again: `'flow rerun ${executionId}' runs what failed again and keeps what completed`,
    moreOf: (childId) => `'flow status ${childId}' shows the sub-playbook`,
  };
}

function hintFor(error: TaskError, where: RunLocation): string {
  // The same codes are used for credentials and for other things: a missing interpreter, a named file.
  if (CODES_OF_CREDENTIALS.has(error.code) && /\bcredentials?\b/i.test(error.message)) {
    return `check the credential: ${where.credentials}`;
  }
  if (error.kind === "auth") return `check the task's \`auth\` and the credential: ${where.credentials}`;
  const child =
    error.kind === "sub_playbook" && isJsonObject(error.details) ? error.details["execution_id"] : undefined;
  if (typeof child === "string" && where.moreOf !== undefined) return where.moreOf(child);
  return HINTS_BY_CODE.get(error.code) ?? HINTS[error.kind] ?? retryHint(error, where);
}

const CODES_OF_CREDENTIALS: ReadonlySet<string> = new Set(["FILE_UNREADABLE", "INVALID_SETTING", "NOT_FOUND"]);

/** Codes that say more than their kind. A code may be any word: of a python exception it is the name of its class. */
const HINTS_BY_CODE: ReadonlyMap<string, string> = new Map([
  ["FILE_UNREADABLE", "check that the file is there and may be read"],
  ["INVALID_SETTING", "correct the setting; `flow config` shows all of them and where each comes from"],
  ["NOT_FOUND", "check the name that the task was given; `flow plan` shows what its templates give"],
]);

const HINTS: Partial<Record<TaskErrorKind, string>> = {
  timeout: "raise `timeout` of the task or the step, or make the work smaller",
  not_found: "check the address or name that the task was given; `flow plan` shows what its templates give",
  schema: "check what the task was given; `flow plan` shows what its templates give",
  template: "check the template; `flow plan` shows what every template gives",
  configuration: "correct the task's keys; `flow validate` checks the document",
  db_constraint: "check the row against the table's constraints",
  sub_playbook: "run the sub-playbook by itself to see more",
  policy: "the playbook's own rule failed it: see `spec.policy.rules` of the task",
};

function retryHint(error: TaskError, { more }: RunLocation): string {
  if (error.retryable && (error.attempt ?? 1) === 1) {
    return "trying again may help: `spec: {policy: {rules: [{when: \"{{ outcome.status == 'error' }}\", then: {do: retry}}]}}`";
  }
  return error.retryable ? "the cause may pass: run it again later" : more;
}
