import { FlowError } from "./errors.ts";

/** How much a {@link Diagnostic} matters: an error keeps a document from being registered or run, a warning does not. */
export type DiagnosticSeverity = "error" | "warning";

/** One problem of a document, with the place where it stands (language document, sections 10 and 11). */
export type Diagnostic = {
  severity: DiagnosticSeverity;
  /** Name of the document as the caller gave it. */
  file: string;
  /** 1-based. */
  line: number;
  /** 1-based, counted in UTF-16 units as editors do. */
  column: number;
  /** Where in the structure, e.g. `workflow[2].tool.url`; empty for the document as a whole. */
  path: string;
  /** Stable kebab-case name of the rule. */
  code: string;
  message: string;
  /** What to do about it. */
  hint?: string;
};

/** The errors among the problems that an `INVALID_PLAYBOOK` carries as its detail; none for anything else. */
export function errorsOf(error: unknown): Diagnostic[] {
  if (!(error instanceof FlowError) || error.code !== "INVALID_PLAYBOOK" || !Array.isArray(error.detail)) return [];
  // The code that raises this error puts the diagnostics there, unchanged.
  const diagnostics = error.detail as unknown as Diagnostic[];
  return diagnostics.filter(({ severity }) => severity === "error");
}

/** One line for people: `file:line:column  code  message  (hint)`. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { file, line, column, code, message, hint } = diagnostic;
  return `${file}:${line}:${column}  ${code}  ${message}${hint === undefined ? "" : `  (${hint})`}`;
}
