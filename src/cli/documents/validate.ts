import { loadCatalogDocument } from "../../language/load/catalog-document.ts";
import { readBytes, shown } from "../../local/catalog.ts";
import { type Diagnostic, formatDiagnostic } from "../../schema/words/diagnostic.ts";
import { type CliInput, EXIT } from "../command-line/command.ts";
import { cleanText, jsonText, plural } from "../terminal/text.ts";
import { documentFiles } from "./document-files.ts";

/**
 * `flow validate`: every problem of every document. Problems are the output, so they go to standard output; what keeps a
 * file from being read goes to standard error as any other error.
 */
export async function validateFiles({ arguments: targets, options, io }: CliInput): Promise<number> {
  const files = await documentFiles(targets, io.folder, io.signal);
  const found: Diagnostic[] = [];
  for (const file of files) {
    io.signal.throwIfAborted();
    const { diagnostics } = loadCatalogDocument(await readBytes(file), shown(file));
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
