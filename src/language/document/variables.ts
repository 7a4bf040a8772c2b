import type { Assignment, Playbook } from "../../schema/words/playbook.ts";
import { optionalReads } from "../template/optional-reads.ts";
import type { Report } from "./source/findings.ts";
import { didYouMean } from "./source/hints.ts";
import { findWord, textOffset } from "./source/text-offset.ts";
import type { TemplateNeeds } from "./templates.ts";

/** Names that templates can always read (language document, section 4.9). */
export const RESERVED_NAMES: readonly string[] = [
  "execution_id",
  "catalog_id",
  "parent_execution_id",
  "job",
  "workload",
  "ctx",
  "vars",
  "spec",
  "iter",
  "input",
  "args",
  "keychain",
  "env",
  "steps",
  "event",
  "signal",
  "approval",
  "output",
  "outcome",
  "result",
  "response",
  "_prev",
  "_attempt",
  "loop_index",
  "__frame_max_rows",
  "__frame_lease_seconds",
  "__claim_id",
];

/** Most unknown names that are looked up: each costs up to 1,000 comparisons of words. */
const LOOKUPS_MAX = 500;

/**
 * Warns of names that nothing in the document defines. The request may bring further inputs, so that an unknown name
 * alone proves nothing: it is reported only when a known name is very like it, which makes it a slip of the hand. A field of
 * `workload`, `ctx`, `vars` or `steps` is reported in any case, unless some template reads it as what may be absent.
 */
export function checkVariables(
  document: string,
  playbook: Playbook,
  all: readonly TemplateNeeds[],
  report: Report,
): void {
  const names = collectNames(playbook);
  let lookups = 0;
  let found: Set<string> | undefined;
  // Most documents read nothing that is not defined: their templates are not walked through once more.
  const optional = () => {
    if (found !== undefined) return found;
    found = new Set<string>();
    for (const { use } of all) optionalReads(use.place.value, use.condition, found);
    return found;
  };
  for (const { use, needs } of all) {
    const check = (
      word: string,
      known: ReadonlySet<string>,
      near: () => Iterable<string>,
      shown: string,
      otherwise?: string,
    ): void => {
      if (known.has(word) || ++lookups > LOOKUPS_MAX) return;
      const hint = (word.length < 3 ? undefined : didYouMean(word, near())) ?? otherwise;
      if (hint === undefined) return;
      const found = findWord(use.place, word);
      const offset = found === undefined ? undefined : textOffset(document, found.place, found.index);
      report("unknown-variable", found?.place ?? use.place, `nothing defines \`${shown}\``, hint, offset);
    };
    for (const name of needs.names) check(name, names.anywhere, () => [...use.labels, ...names.everywhere], name);
    for (const [root, known] of names.members) {
      const fields = needs.members.get(root);
      if (fields === undefined || fields === "all") continue;
      for (const field of fields) {
        if (known.has(field)) continue;
        const shown = `${root}.${field}`;
        check(field, known, () => known, shown, optional().has(shown) ? undefined : ABSENT_HINTS[root]);
      }
    }
  }
}

/** What to do about a field that nothing defines, by the name that holds it. Others may come from elsewhere. */
const ABSENT_HINTS: Readonly<Record<string, string>> = {
  workload: "give it a default in `workload`, or read it with `| default(…)`",
  ctx: "read it with `| default(…)` if it may be absent",
  vars: "read it with `| default(…)` if it may be absent",
  steps: "there is no step of that name",
};

interface Names {
  /** Readable in every template. */
  everywhere: ReadonlySet<string>;
  /** Those, and task labels, which only some templates can read. */
  anywhere: ReadonlySet<string>;
  /** Fields of names that hold names. */
  members: ReadonlyMap<string, ReadonlySet<string>>;
}

function collectNames(playbook: Playbook): Names {
  const { steps, workbook } = playbook;
  const workload = new Set([...Object.keys(playbook.workload), ...Object.keys(playbook.inputs ?? {})]);
  const stepNames = new Set(steps.map((step) => step.name));
  const set = new Set(assignmentsOf(playbook).map((assignment) => assignment.name.split(".", 1)[0] ?? ""));
  const tasks = [...steps.flatMap((step) => step.tasks), ...workbook];
  const inputs = [...steps, ...tasks].flatMap((owner) => Object.keys(owner.input));
  const iterators = steps.flatMap((step) => (step.loop === undefined ? [] : [step.loop.iterator]));
  const everywhere = new Set([...workload, ...set, ...stepNames, ...inputs, ...iterators, ...RESERVED_NAMES]);
  const members = new Map<string, ReadonlySet<string>>([
    ["workload", workload],
    ["vars", set],
    ["ctx", new Set([...workload, ...set, ...stepNames])],
    ["steps", stepNames],
    ["keychain", new Set(playbook.keychain.map((entry) => entry.name))],
  ]);
  return { everywhere, anywhere: new Set([...everywhere, ...tasks.map((task) => task.label)]), members };
}

function assignmentsOf({ steps, workbook }: Playbook): Assignment[] {
  const tasks = [...steps.flatMap((step) => step.tasks), ...workbook];
  return [
    ...tasks.flatMap((task) => [...task.set, ...task.policy.flatMap((rule) => rule.set)]),
    ...steps.flatMap((step) => [...step.set, ...step.next.arcs.flatMap((arc) => arc.set)]),
  ];
}
