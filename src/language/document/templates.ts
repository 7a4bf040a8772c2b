import type { Needs } from "../needs.ts";
import { compileCondition, compileTemplate } from "../template.ts";
import { DIAGNOSTICS_LISTED_MAX, type Report } from "./findings.ts";
import type { Place } from "./place.ts";
import type { TemplateUse } from "./reading.ts";
import { textOffset } from "./text-offset.ts";

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
    for (const [index, { path, offset, message }] of compiled.problems.entries()) {
      const at = follow(place, path);
      const code = UNKNOWN_NAME.test(message) ? "unknown-filter" : "template-syntax";
      // Finding a character costs a pass over the text: only for as many as are listed.
      const exact = index < DIAGNOSTICS_LISTED_MAX ? textOffset(document, at, offset) : at.valueStart;
      report(code, at, message, undefined, exact);
    }
    return { use, needs: compiled.needs };
  });
}

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
