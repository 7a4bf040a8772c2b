import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { loadPlaybook } from "../language/load.ts";
import { readBytes, shown } from "../local/catalog.ts";
import { type Diagnostic, formatDiagnostic } from "../schema/diagnostic.ts";
import { FlowError, messageOf } from "../schema/errors.ts";
import { type CliInput, type CliIo, EXIT } from "./command.ts";
import { cleanText, jsonText, plural } from "./text.ts";

/**
 * `flow validate`: every problem of every document. Problems are the output, so they go to standard output; what keeps a
 * file from being read goes to standard error as any other error.
 */
export async function validateFiles({ arguments: targets, options, io }: CliInput): Promise<number> {
  const files = await filesOf(targets, io);
  const found: Diagnostic[] = [];
  for (const file of files) {
    io.signal.throwIfAborted();
    const { diagnostics } = loadPlaybook(await readBytes(file), shown(file));
    for (const diagnostic of diagnostics) found.push(diagnostic);
  }
  const strict = options["strict"] === true;
  const isError = (diagnostic: Diagnostic) => strict || diagnostic.severity === "error";
  const errors = found.filter(isError);
  const warnings = found.filter((diagnostic) => !isError(diagnostic));
  const valid = errors.length === 0;
  if (options["json"] === true) {
    const report = { valid, errors: errors.map(withoutSeverity), warnings: warnings.map(withoutSeverity) };
    io.stdout.write(`${jsonText(report)}\n`);
  } else {
    for (const diagnostic of found) io.stdout.write(`${line(diagnostic, isError(diagnostic))}\n`);
    io.stderr.write(`${verdict(files, errors.length, warnings.length)}\n`);
  }
  return valid ? EXIT.ok : EXIT.usage;
}

/** Section 11 of the language document: the lists say what is an error. */
function withoutSeverity({ severity: _, ...rest }: Diagnostic): Omit<Diagnostic, "severity"> {
  return rest;
}

function line(diagnostic: Diagnostic, isError: boolean): string {
  const { message } = diagnostic;
  return cleanText(formatDiagnostic({ ...diagnostic, message: isError ? message : `warning: ${message}` }));
}

function verdict(files: readonly string[], errors: number, warnings: number): string {
  const [only] = files;
  const what = files.length === 1 && only !== undefined ? cleanText(shown(only)) : plural(files.length, "document");
  const noted = warnings === 0 ? "" : `, ${plural(warnings, "warning")}`;
  if (errors > 0) return `${what}: ${plural(errors, "error")}${noted}`;
  return `${what}: valid${noted}`;
}

/** The files meant: a file as it is, a folder as the playbooks below it. Throws `FlowError` when nothing is there. */
async function filesOf(targets: readonly string[], { folder, signal }: CliIo): Promise<string[]> {
  const files: string[] = [];
  for (const target of targets) {
    const path = resolve(folder, target);
    if (!(await isFolder(path, target))) {
      files.push(path);
      continue;
    }
    const below = await playbooksBelow(path, signal);
    if (below.length === 0) {
      throw new FlowError(
        "NOT_FOUND",
        `There is no playbook (*.yaml or *.yml with 'kind: Playbook') in or below ${target}`,
      );
    }
    files.push(...below);
  }
  return [...new Set(files)];
}

async function isFolder(path: string, target: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (cause) {
    throw new FlowError("FILE_UNREADABLE", `Cannot read ${target}: ${messageOf(cause)}`, { cause });
  }
}

async function playbooksBelow(folder: string, signal: AbortSignal): Promise<string[]> {
  signal.throwIfAborted();
  const entries = await readdir(folder, { withFileTypes: true });
  const files: string[] = [];
  for (const entry of entries.sort((left, right) => (left.name < right.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!entry.name.startsWith(".") && entry.name !== "node_modules")
        files.push(...(await playbooksBelow(path, signal)));
    } else if (entry.isFile() && /(?<!\.test)\.ya?ml$/.test(entry.name) && (await isPlaybook(path))) {
      files.push(path);
    }
  }
  return files;
}

/** Folders hold other YAML too (compose files, CI): a playbook is what says so, or has a workflow. */
async function isPlaybook(file: string): Promise<boolean> {
  return MARK.test(Buffer.from(await readBytes(file)).toString("utf8"));
}

const MARK = /^(?:["']?workflow["']?\s*:|["']?kind["']?\s*:\s*["']?(?:Playbook|Agent)\b)/m;
