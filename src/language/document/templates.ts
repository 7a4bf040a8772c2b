import type { Needs } from "../template/needs.ts";
import { compileCondition, compileTemplate } from "../template/template.ts";
import { wholeTemplate } from "./durations.ts";
import type { DiagnosticCode } from "./source/codes.ts";
import { DIAGNOSTICS_LISTED_MAX, type Report } from "./source/findings.ts";
import type { Place } from "./source/place.ts";
import type { Reading, TemplateUse } from "./source/reading.ts";
import { findWord, textOffset } from "./source/text-offset.ts";

/** What one value with templates reads, for the check of names. */
export interface TemplateNeeds {
  use: TemplateUse;
  needs: Needs;
}

/** Compiles every template and condition of a document, reports what does not parse, and answers what each reads. */
export function checkTemplates(document: string, uses: readonly TemplateUse[], report: Report): TemplateNeeds[] {
  return uses.map((use) => {
    const { place, condition } = use;
    const compiled = condition ? compileCondition(place.value) : compileTemplate(place.value);
    for (const [index, problem] of compiled.problems.entries()) {
      const at = follow(place, problem.path);
      const found = finding(use, at, problem);
      if (found === undefined) continue;
      const { code, message, hint } = found;
      // Finding a character costs a pass over the text: only for as many as are listed.
      const exact = index < DIAGNOSTICS_LISTED_MAX ? textOffset(document, at, problem.offset) : at.valueStart;
      report(code, at, message, hint, exact);
    }
    return { use, needs: compiled.needs };
  });
}

/** The same for values that are rendered without an execution, and reports the names that they cannot read. */
export function checkApart(document: string, values: Reading["apart"], report: Report): void {
  const labels = new Set<string>();
  for (const { place, names, condition = false } of values) {
    const [checked] = checkTemplates(document, [{ place, condition, isOurs: true, labels }], report);
    for (const name of checked?.needs.names ?? []) {
      if (names.has(name)) continue;
      const found = findWord(place, name);
      const offset = found === undefined ? undefined : textOffset(document, found.place, found.index);
      const hint = `it can read ${[...names].map((one) => `\`${one}\``).join(", ")}`;
      report("unknown-variable", found?.place ?? place, `nothing defines \`${name}\` here`, hint, offset);
    }
  }
}

type Problem = ReturnType<typeof compileTemplate>["problems"][number];

/**
 * What a template that does not parse means where it stands: an error where its value decides something, and where it is the
 * whole value; a warning in text that may be meant for others, who have marks that look the same.
 */
function finding(
  use: TemplateUse,
  at: Place,
  { message, error, isMixed, isOpen }: Problem,
): { code: DiagnosticCode; message: string; hint?: string } | undefined {
  if (isMixed === true) return { code: "mixed-condition", message };
  const mustParse = use.isOurs || error.code === "TEMPLATE_BUDGET";
  const isWhole = !mustParse && typeof at.value === "string" && wholeTemplate(at.value) !== undefined;
  if (!mustParse && !isWhole) {
    // Two braces in a text are a template only where they stand at its beginning.
    if (isOpen === true && !/^\s*\{[{%]/.test(String(at.value))) return undefined;
    const sentence = /[.?!]$/.test(message) ? message : `${message}.`;
    return { code: "foreign-template", message: `${sentence} It stays in the text as it is`, hint: RAW_HINT };
  }
  const code = UNKNOWN_NAME.test(message) ? "unknown-filter" : "template-syntax";
  return isWhole ? { code, message, hint: RAW_HINT } : { code, message };
}

/** How an author says that marks are meant for another program. */
const RAW_HINT = "if it is meant for another program, write {% raw %}…{% endraw %} around it";

/** How the compiler says that a filter, test, function or method does not exist. */
const UNKNOWN_NAME = /there is no (?:filter|test|function|method) /;

function follow(place: Place, path: readonly (string | number)[]): Place {
  let at = place;
  for (const key of path) {
    const next = typeof key === "number" ? at.items[key] : at.fields.get(key);
    if (next === undefined) return at;
    at = next;
  }
  return at;
}
