import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import * as v from "valibot";
import { compileProgram } from "../../engine/program/program.ts";
import { loadRegistered } from "../../language/load/load.ts";
import { createFileCatalog, type LocalPlaybook } from "../../local/catalog.ts";
import { DocumentProblems } from "../../schema/api/catalog.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { CliIo } from "../command-line/command.ts";
import { loadNamed } from "../documents/named-playbook.ts";
import { sendDocument } from "../documents/register.ts";
import { callServer } from "../server/client.ts";
import type { ServerTarget } from "../server/target.ts";
import { cleanText } from "../terminal/text.ts";

/** A playbook from a server. */
export interface ServerPlaybook {
  catalogId: string;
  path: string;
  version: number;
  kind: "playbook" | "agent";
  /** Its document, for the descriptions of its steps; undefined if this version of flow cannot read it. */
  document: LocalPlaybook | undefined;
  /** Where it was read from, when it was a file. */
  file: string | undefined;
}

/**
 * The playbook that a command line names, on a server: a file, which is registered there unless its text is that of the
 * newest version; else a path of the catalog. Prints what was registered on standard error unless `quiet`.
 *
 * Throws `FlowError` USAGE, NOT_FOUND, INVALID_PLAYBOOK with the problems at their places, and as `callServer` does.
 */
export async function resolvePlaybook(
  target: ServerTarget,
  word: string,
  { version, quiet }: { version: string | undefined; quiet: boolean },
  io: CliIo,
): Promise<ServerPlaybook> {
  if (await isFile(word, io)) {
    if (version === undefined) return await registerFile(target, word, quiet, io);
    const hint = "Leave --version out to run the file, or name its path in the catalog";
    throw new FlowError("USAGE", `--version is of what is registered, and ${word} is a file. ${hint}`);
  }
  // A name with a file's ending means a file; this throws the error for a missing one.
  if (/\.ya?ml$/.test(word)) await loadNamed(createFileCatalog(), word, io);
  try {
    return await fromCatalog(target, word, version, io.signal);
  } catch (error) {
    if (!(error instanceof FlowError) || error.code !== "NOT_FOUND" || version !== undefined) throw error;
    for (const ending of [".yaml", ".yml"]) {
      if (await isFile(word + ending, io)) return await registerFile(target, word + ending, quiet, io);
    }
    const hint = "'flow catalog' lists what is registered there, 'flow register' adds to it";
    throw new FlowError("NOT_FOUND", `${error.message} at ${target.url}, and there is no such file here. ${hint}`);
  }
}

/** Whether a word of a command line names a file. */
export async function isFile(word: string, { folder }: CliIo): Promise<boolean> {
  return (await stat(resolve(folder, word)).catch(() => undefined))?.isFile() === true;
}

async function registerFile(target: ServerTarget, word: string, quiet: boolean, io: CliIo): Promise<ServerPlaybook> {
  // Reports the document's problems before the server is called.
  const document = await loadNamed(createFileCatalog(), word, io);
  const file = resolve(io.folder, word);
  const answer = await sendDocument(target, file, { ifChanged: true }, io.signal).catch((error: unknown) => {
    throw withPlaces(error, word);
  });
  const { path, version, catalog_id: catalogId, kind, unchanged } = answer;
  if (kind === "mcp" || kind === "trigger") throw notExecutable(path, kind);
  const what = unchanged === true ? "is registered as" : "was registered as";
  if (!quiet) io.stderr.write(`${cleanText(`${word} ${what} ${path} version ${version}`)}\n`);
  return { catalogId, path, version, kind, document, file };
}

/** A server of another version may refuse what is valid here. */
export function withPlaces(error: unknown, file: string): unknown {
  if (!(error instanceof FlowError)) return error;
  const problems = v.safeParse(DocumentProblems, error.detail);
  if (!problems.success) return error;
  const detail = problems.output.errors.map((problem) => ({ ...problem, file, severity: "error" as const }));
  return new FlowError(error.code, `${file} was refused: ${error.message}`, { detail, cause: error });
}

async function fromCatalog(
  target: ServerTarget,
  word: string,
  requestedVersion: string | undefined,
  signal: AbortSignal,
): Promise<ServerPlaybook> {
  const input = { params: { path: word }, query: { version: requestedVersion }, signal };
  const {
    path,
    version,
    catalog_id: catalogId,
    kind,
    content,
  } = await callServer(target, CATALOG_ROUTES.resource, input);
  if (kind === "mcp" || kind === "trigger") throw notExecutable(path, kind);
  return { catalogId, path, version, kind, document: readDocument(content, `${path}@${version}`), file: undefined };
}

/** The document of a registered text; undefined where it is no playbook that this version knows. */
export function readDocument(content: string, file: string): LocalPlaybook | undefined {
  const { playbook } = loadRegistered(content, file);
  return playbook === undefined ? undefined : { program: compileProgram(playbook), file, warnings: [] };
}

function notExecutable(path: string, kind: string): FlowError {
  const hint = "A playbook with a task of kind 'mcp' calls it";
  return new FlowError("INVALID_INPUT", `${path} is of kind '${kind}' and cannot be executed. ${hint}`);
}
