import type { Diagnostic, DiagnosticSeverity } from "../../../schema/words/diagnostic.ts";
import { DIAGNOSTIC_RULES, type DiagnosticCode } from "./codes.ts";
import type { Locate } from "./locator.ts";
import { type Place, pathOf } from "./place.ts";

/** Most diagnostics listed of each severity; beyond them one more says how many there are. */
export const DIAGNOSTICS_LISTED_MAX = 100;

/** A hint, or a function that finds one: similar names are searched only for findings that are listed in the end. */
export type Hint = string | (() => string | undefined);

/** Reports one problem at an offset of the text. `place` gives the path. */
export type Report = (
  code: DiagnosticCode,
  place: Place | undefined,
  message: string,
  hint?: Hint,
  offset?: number,
) => void;

/** What was found so far in one document. */
export interface Findings {
  /** Without `offset` the problem is located where the place's value begins. */
  report: Report;
  hasErrors(): boolean;
  /** In the order of the text, bounded by {@link DIAGNOSTICS_LISTED_MAX}. */
  list(file: string, locate: Locate): Diagnostic[];
}

interface Finding {
  code: DiagnosticCode;
  place: Place | undefined;
  offset: number;
  message: string;
  hint: Hint | undefined;
}

/** An empty collection of problems. Those with a code of `lenient` are warnings, whatever their rule says. */
export function createFindings(lenient: ReadonlySet<DiagnosticCode> = new Set()): Findings {
  const found: Record<DiagnosticSeverity, Finding[]> = { error: [], warning: [] };
  const severityOf = (code: DiagnosticCode) => (lenient.has(code) ? "warning" : DIAGNOSTIC_RULES[code].severity);
  const toDiagnostic = diagnosticWith(severityOf);
  return {
    report: (code, place, message, hint, offset = place?.valueStart ?? 0) => {
      found[severityOf(code)].push({ code, place, offset, message, hint });
    },
    hasErrors: () => found.error.length > 0,
    list: (file, locate) => {
      const listed = [...bounded(found.error, "more-errors"), ...bounded(found.warning, "more-warnings")];
      return listed.sort(byOffset).map((finding) => toDiagnostic(finding, file, locate));
    },
  };
}

function byOffset(a: Finding, b: Finding): number {
  return a.offset - b.offset;
}

/** The first findings of a severity, and one with the number of the rest. */
function bounded(findings: readonly Finding[], code: "more-errors" | "more-warnings"): Finding[] {
  const seen = new Set<string>();
  const sorted = findings.toSorted(byOffset).filter(({ offset, code, message }) => {
    const problem = `${offset} ${code} ${message}`;
    return !seen.has(problem) && seen.add(problem);
  });
  const rest = sorted[DIAGNOSTICS_LISTED_MAX];
  if (rest === undefined) return sorted;
  const message = `and ${sorted.length - DIAGNOSTICS_LISTED_MAX} more from here on`;
  return [...sorted.slice(0, DIAGNOSTICS_LISTED_MAX), { ...rest, code, message, hint: undefined }];
}

function diagnosticWith(severityOf: (code: DiagnosticCode) => DiagnosticSeverity) {
  return (finding: Finding, file: string, locate: Locate): Diagnostic => {
    const { code, place, message } = finding;
    const hint = typeof finding.hint === "function" ? finding.hint() : finding.hint;
    return {
      severity: severityOf(code),
      file,
      ...locate(finding.offset),
      path: place === undefined ? "" : pathOf(place),
      code,
      message,
      ...(hint === undefined ? {} : { hint }),
    };
  };
}
