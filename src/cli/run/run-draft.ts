import { resolve } from "node:path";
import { createFileCatalog, type LocalPlaybook } from "../../local/catalog.ts";
import type { DraftStepBody } from "../../schema/api/catalog.ts";
import { DRAFT_ROUTES } from "../../schema/routes/executions.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { type CliInput, type CliIo, textOption } from "../command-line/command.ts";
import { checkTarget, loadNamed } from "../documents/named-playbook.ts";
import { readText } from "../documents/register.ts";
import { writePlan } from "../executions/rerun.ts";
import { callServer } from "../server/client.ts";
import { startOnServer } from "../server/executions-api.ts";
import type { ServerTarget } from "../server/target.ts";
import { isConfirmed } from "../terminal/confirm.ts";
import { cleanText, jsonText } from "../terminal/text.ts";
import { isFile, withPlaces } from "../watch/server-playbook.ts";

/** A file whose text is run without being registered. */
export interface DraftFile {
  path: string;
  version: 0;
  document: LocalPlaybook;
  file: string;
  content: string;
}

/** Reads and checks the file. Throws `FlowError` as a run of it here would. */
export async function readDraft(word: string, io: CliIo): Promise<DraftFile> {
  const named = await fileNamed(word, io);
  const document = await loadNamed(createFileCatalog(), named ?? word, io);
  if (named === undefined) {
    throw new FlowError(
      "USAGE",
      `--draft runs the text of a file, and '${word}' is a path. Name its file, ${document.file}`,
    );
  }
  const file = resolve(io.folder, named);
  return { path: document.program.playbook.path, version: 0, document, file, content: await readText(file) };
}

/** With or without its ending, as a run here finds it. */
async function fileNamed(word: string, io: CliIo): Promise<string | undefined> {
  for (const name of [word, `${word}.yaml`, `${word}.yml`]) if (await isFile(name, io)) return name;
  return undefined;
}

/** A draft's execution that has begun. */
interface Begun {
  execution_id: string;
  warnings?: string[];
}

/**
 * Starts a draft on a server, or one step of it. Undefined: only its plan was asked for, and is printed, or the plan was not confirmed.
 * Throws as `callServer` does, INVALID_PLAYBOOK with the problems at their places.
 */
export async function startDraft(
  input: CliInput,
  target: ServerTarget,
  { document, content }: DraftFile,
  asked: { workload: JsonObject; target: string | undefined; labels?: Record<string, string> },
  signal: AbortSignal,
): Promise<Begun | undefined> {
  const { options } = input;
  const step = textOption(options, "step");
  const refused = (error: unknown): never => {
    throw withPlaces(error, document.file);
  };
  if (step === undefined) {
    const body = {
      content,
      workload: asked.workload as never,
      ...defined({ target: asked.target, labels: asked.labels }),
    };
    return await startOnServer(target, DRAFT_ROUTES.run, { body }, signal).catch(refused);
  }
  checkTarget(document, step, "step");
  const body = { content, step, ...defined({ execution_id: textOption(options, "of") }) };
  return await testStep(input, target, body, signal).catch(refused);
}

/** Begins the test of a step; on a terminal after its plan is confirmed. */
async function testStep(
  input: CliInput,
  target: ServerTarget,
  body: DraftStepBody,
  signal: AbortSignal,
): Promise<Begun | undefined> {
  const { options, io } = input;
  const isJson = options["json"] === true;
  const isPlanned = options["dry-run"] === true;
  const asks = !isJson && options["yes"] !== true && io.stdin?.isTTY === true && io.stdout.isTTY === true;
  if (isPlanned || asks) {
    const plan = await callServer(target, DRAFT_ROUTES.step, { body: { ...body, dry_run: true }, signal });
    if (isJson) io.stdout.write(`${jsonText(plan)}\n`);
    else writePlan(input, plan);
    if (isPlanned) return undefined;
    if (!(await isConfirmed(io, "Begin it?"))) {
      io.stdout.write("Nothing was begun\n");
      return undefined;
    }
  }
  const { execution_id: id, ...answer } = await startOnServer(target, DRAFT_ROUTES.step, { body }, signal);
  if (id === undefined) throw new FlowError("INTERNAL", "The server named no execution");
  if (options["quiet"] !== true) {
    io.stderr.write(`${cleanText(`step '${body.step}' runs with what it had in execution ${answer.rerun_of}`)}\n`);
  }
  return { execution_id: id, ...answer };
}
