import type { DiagnosticSeverity } from "../../../schema/words/diagnostic.ts";

/** What a rule of the loader means, and whether breaking it keeps a document from running. */
export interface DiagnosticRule {
  severity: DiagnosticSeverity;
  /** One sentence for the documentation. */
  meaning: string;
}

function error(meaning: string): DiagnosticRule {
  return { severity: "error", meaning };
}

function warning(meaning: string): DiagnosticRule {
  return { severity: "warning", meaning };
}

/** Every code that the loader reports (language document, section 10). The one table: the documentation lists it. */
export const DIAGNOSTIC_RULES = {
  // The text.
  "too-large": error("The document is longer than 1 MiB, or has more than 600,000 YAML tokens."),
  "not-utf8": error("The document has bytes that are not UTF-8."),
  "not-text": error("The document has a control character that YAML does not allow, or half a character."),
  "empty-document": error("The document has no content."),
  "not-a-map": error("The document is not a map of keys at its top."),
  "yaml-syntax": error("The text is not YAML."),
  "tab-indent": error("A tab indents a line; YAML allows only spaces."),
  "too-deep": error("Maps and lists are nested deeper than 200 levels."),
  "duplicate-key": error("A map has the same key twice."),
  "reserved-key": error("A key is called `__proto__`, which programs could mistake for something else."),
  "unquoted-template": error("A template stands without quotes, so that YAML reads its braces as a map."),
  "bad-key": error("A key is a list or a map."),
  "unknown-alias": error("A `*name` refers to no `&name` before it."),
  "alias-expansion": error("Aliases repeat more than 10,000 values, or one contains itself."),
  "not-json": error("A number is infinite or not a number, which JSON cannot hold."),
  "imprecise-number": warning("A whole number is beyond 2^53, so that its last digits are lost."),
  "several-documents": warning("The file has more than one document; only the first is read."),
  "yaml-warning": warning("The YAML reader understood the text but doubts it, for example because of an unknown tag."),

  // Shape.
  "missing-key": error("A required key is absent."),
  "wrong-type": error("A value is of another type than its key takes."),
  "wrong-value": error("A value is not among those that its key takes."),
  "wrong-api-version": error("`apiVersion` is not a vendor-prefixed `…/v2`."),
  "removed-form": error("A form of earlier versions that is gone (`eval`, `expr`, `case`, `sink`)."),
  "unknown-key": warning("A key means nothing where it stands."),
  "unknown-form": warning("A value in a form of another program, which is passed over."),
  "legacy-form": warning("An older spelling, still understood."),
  "misspelled-kind": error("A kind of task that is a slip of the hand: a known one is written nearly the same."),
  "unknown-kind": warning("Nothing runs tasks of this kind: the task fails when it is reached."),
  "kind-without-runner": warning(
    "The language knows this kind, and this program has no runner for it: the task fails.",
  ),
  "text-as-map": error("A command with `: ` in it, which YAML takes for a map."),
  "wrong-wait": error("A wait does not say what it waits for, or stands where it cannot wait by itself."),
  "wrong-input": error(
    "A declared input has no schema that can be checked, or a default that it refuses or may not have.",
  ),
  "wrong-trigger": error("A trigger does not say when it fires, or says it in a form that flow does not know."),
  "incomplete-task": warning("A task lacks what its kind needs: it fails when it is reached."),
  "wrong-option": warning(
    "A literal that a key of this kind of task does not take: the task fails when it is reached, or passes it over.",
  ),
  "incomplete-entry": warning("A keychain entry lacks what its kind needs: what reads it fails."),

  // Meaning.
  "empty-workflow": error("`workflow` has no steps."),
  "too-many-steps": error("`workflow` has more than 10,000 steps."),
  "duplicate-step": error("Two steps have the same name."),
  "duplicate-label": error("Two tasks of a step have the same label."),
  "duplicate-name": error("Two entries of `keychain`, `workbook` or `triggers` have the same name."),
  "unknown-step": error("An arc, `entry_step` or `final_step` names a step that does not exist."),
  "system-call": error(
    "A task calls a system playbook (`api_integration/…`, `system/…`), and the document is not one.",
  ),
  "unknown-label": error("A `jump` names no task of its step."),
  "unknown-action": error("A rule's `do` is not one of continue, retry, jump, break, fail."),
  "loop-without-collection": error("A `loop` has neither `in` nor `cursor`."),
  "missing-tool": warning("A step has no tool; it does nothing but lead on."),
  "missing-action": warning("A rule has no `do`; it continues."),
  "unreachable-step": warning("No path of arcs leads to this step."),
  "unknown-workbook": warning("A `workbook` task names no entry of the document's `workbook`."),

  "unknown-playbook": warning(
    "When registering: a `playbook` task, or a trigger, names a path that the catalog does not have.",
  ),

  // Templates.
  "template-syntax": error(
    "A condition does not parse, or a template in `loop.in`, `set`, `input`, `args`, `params`, `url` or as a whole value.",
  ),
  "unknown-filter": error("The same, because it uses a filter, function or test that does not exist."),
  "foreign-template": warning(
    "Marks in a text are no template of this language; they stay as they are, for whom the text is meant.",
  ),
  "mixed-condition": warning("A condition mixes text and `{{ … }}`, so that it is true whatever the values are."),
  "unknown-variable": warning(
    "A template reads a name that nothing defines: a field of `workload`, `ctx`, `vars` or `steps`, or a name that is very like another.",
  ),

  // The list of problems itself.
  "more-errors": error("There are more errors than the 100 that are listed."),
  "more-warnings": warning("There are more warnings than the 100 that are listed."),
} as const satisfies Readonly<Record<string, DiagnosticRule>>;

/** Code of a rule of the loader. */
export type DiagnosticCode = keyof typeof DIAGNOSTIC_RULES;
