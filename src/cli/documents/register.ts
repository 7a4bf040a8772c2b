import { setTimeout as delay } from "node:timers/promises";
import * as v from "valibot";
import { readBytes, shown } from "../../local/catalog.ts";
import { loadConfig } from "../../platform/config/config.ts";
import { type DocumentProblem, DocumentProblems, type RegisterAnswer } from "../../schema/api/catalog.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { defined } from "../../schema/words/defined.ts";
import { formatDiagnostic } from "../../schema/words/diagnostic.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CliInput, type CliIo, EXIT } from "../command-line/command.ts";
import { callServer } from "../server/client.ts";
import { type ServerTarget, serverTarget } from "../server/target.ts";
import { cleanText, plural } from "../terminal/text.ts";
import { documentFiles } from "./document-files.ts";

/** The result for one file. */
type Outcome = { file: string; answer: RegisterAnswer } | { file: string; refusal: FlowError };

/** Errors about one document: the others are still tried. */
const ABOUT_THE_DOCUMENT: ReadonlySet<string> = new Set(["INVALID_PLAYBOOK", "INVALID_INPUT", "TOO_LARGE"]);

/**
 * `flow register`: each document becomes the newest version of its path. A refused document does not stop the others; it
 * makes the exit code 2.
 */
export async function registerFiles(input: CliInput): Promise<number> {
  const { arguments: targets, options, io } = input;
  const files = await documentFiles(targets, io.folder, io.signal);
  const target = await serverTarget(input, loadConfig(io.environment));
  const json = options["json"] === true;
  const ways = { ifChanged: options["force"] !== true, strict: options["strict"] === true };
  const outcomes: Outcome[] = [];
  for (const file of files) {
    const outcome = await register(target, file, ways, io);
    outcomes.push(outcome);
    if (!json) printOutcome(outcome, io);
  }
  if (json) io.stdout.write(`${JSON.stringify(report(outcomes), null, 2)}\n`);
  const refused = outcomes.filter((outcome) => "refusal" in outcome).length;
  if (refused > 0) io.stderr.write(`${plural(refused, "document")} of ${files.length} refused\n`);
  return refused > 0 ? EXIT.usage : EXIT.ok;
}

async function register(target: ServerTarget, file: string, ways: RegisterOptions, io: CliIo): Promise<Outcome> {
  const name = shown(file);
  try {
    return { file: name, answer: await sendDocument(target, file, ways, io.signal) };
  } catch (error) {
    if (error instanceof FlowError && ABOUT_THE_DOCUMENT.has(error.code)) return { file: name, refusal: error };
    throw error;
  }
}

/** How a document is registered. */
export interface RegisterOptions {
  /** Only when its text is not that of the newest version. */
  ifChanged: boolean;
  /** Not when it has a warning. */
  strict?: boolean;
}

/**
 * Registers one document; with `ifChanged` only if its text differs from the newest version's. Throws `FlowError`
 * FILE_UNREADABLE, INVALID_INPUT if it is not UTF-8, and as `callServer` does: INVALID_PLAYBOOK with `DocumentProblems`.
 */
export async function sendDocument(
  target: ServerTarget,
  file: string,
  { ifChanged, strict = false }: RegisterOptions,
  signal: AbortSignal,
): Promise<RegisterAnswer> {
  const content = await readText(file);
  const body = { content, if_changed: ifChanged || undefined, strict: strict || undefined };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callServer(target, CATALOG_ROUTES.register, { body, signal });
    } catch (error) {
      if (attempt === ATTEMPTS || !isBusy(error, ifChanged)) throw error;
      await delay(RETRY_MS * attempt, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** Attempts to register a document while the server reads too many others, and the time between two. */
const ATTEMPTS = 6;
const RETRY_MS = 500;

/** Whether it helps to send the document again: without `ifChanged` only where it was certainly not registered. */
function isBusy(error: unknown, ifChanged: boolean): boolean {
  return error instanceof FlowError && (error.code === "RATE_LIMITED" || (ifChanged && error.code === "UNAVAILABLE"));
}

/** The text of a document. In JSON, bytes that are not UTF-8 would silently become other characters: these are refused. */
export async function readText(file: string): Promise<string> {
  const bytes = await readBytes(file);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new FlowError("INVALID_INPUT", `${shown(file)} is not UTF-8; save it in UTF-8`, { cause });
  }
}

function printOutcome(outcome: Outcome, io: CliIo): void {
  const { file } = outcome;
  const lines = (problems: readonly DocumentProblem[], severity: "error" | "warning") => {
    for (const problem of problems) io.stderr.write(`${problemLine(file, problem, severity)}\n`);
  };
  if ("refusal" in outcome) {
    const problems = problemsOf(outcome.refusal);
    if (problems === undefined) io.stderr.write(`${cleanText(file)}: ${cleanText(outcome.refusal.message)}\n`);
    else lines(problems.errors, "error");
    return;
  }
  const { path, kind, version, unchanged, warnings } = outcome.answer;
  lines(warnings, "warning");
  const what = unchanged === true ? `unchanged, version ${version}` : `registered as version ${version}`;
  io.stdout.write(`${cleanText(file)}: ${kind} ${cleanText(path)} ${what}\n`);
}

function problemLine(file: string, problem: DocumentProblem, severity: "error" | "warning"): string {
  const message = severity === "warning" ? `warning: ${problem.message}` : problem.message;
  return cleanText(formatDiagnostic({ ...problem, file, severity, message }));
}

function problemsOf(refusal: FlowError): DocumentProblems | undefined {
  const problems = v.safeParse(DocumentProblems, refusal.detail);
  return problems.success ? problems.output : undefined;
}

function report(outcomes: readonly Outcome[]): Record<string, unknown> {
  const registered = outcomes.flatMap((outcome) =>
    "answer" in outcome ? [{ file: outcome.file, ...outcome.answer }] : [],
  );
  const refused = outcomes.flatMap((outcome) => {
    if (!("refusal" in outcome)) return [];
    const { message, code, detail } = outcome.refusal;
    return [{ file: outcome.file, error: message, code, ...defined({ detail }) }];
  });
  return { registered, refused };
}
