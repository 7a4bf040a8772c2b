import type { Trigger } from "../../../schema/triggers/trigger.ts";
import { own } from "../../../schema/words/json.ts";
import type { Position } from "../../../schema/words/playbook.ts";
import type { Report } from "./findings.ts";
import { didYouMean } from "./hints.ts";
import type { Locate } from "./locator.ts";
import { isMap, type Place } from "./place.ts";

/** What the readers of the document's parts share: where problems go, and what is to be checked when all is read. */
export interface Reading {
  readonly report: Report;
  readonly locate: Locate;
  /** Values with templates, to be compiled when every name of the document is known. */
  readonly templates: TemplateUse[];
  /** What starts the playbook by itself. */
  readonly triggers: Trigger[];
  /** Values with templates that are rendered without an execution, and the names that these can read. */
  readonly apart: { place: Place; names: ReadonlySet<string>; condition?: true }[];
  /** Names of steps that something refers to. */
  readonly targets: Target[];
  /** Names of workbook tools that tasks refer to. */
  readonly workbookNames: Target[];
  /** Paths of playbooks that tasks call. */
  readonly calls: Target[];
  /** Where each step's name stands; of two steps with one name, the first. */
  readonly steps: Map<string, Place>;
  /** Labels of the tasks of the step that is being read: templates in it may name them. */
  readonly labels: ReadonlySet<string>;
}

/** Nothing read yet. */
export function openReading(report: Report, locate: Locate): Reading {
  return {
    report,
    locate,
    templates: [],
    triggers: [],
    apart: [],
    targets: [],
    workbookNames: [],
    calls: [],
    steps: new Map(),
    labels: new Set(),
  };
}

/** A value with templates, or a condition. */
export interface TemplateUse {
  place: Place;
  condition: boolean;
  /**
   * What does not parse in it is an error (language document, section 4.3). Elsewhere a text may be meant for others, whose
   * marks look the same.
   */
  isOurs: boolean;
  labels: ReadonlySet<string>;
}

/** A reference to something by its name, and the place that holds the name. */
export interface Target {
  place: Place;
  name: string;
}

/** Notes that the value under `place` is rendered, and that all its templates are meant for this program. */
export function noteTemplate(reading: Reading, place: Place | undefined): void {
  if (place !== undefined) reading.templates.push({ place, condition: false, isOurs: true, labels: reading.labels });
}

/** Notes that the value under `place` is rendered, and that its texts may be meant for others: code, commands, bodies. */
export function noteText(reading: Reading, place: Place | undefined): void {
  if (place !== undefined) reading.templates.push({ place, condition: false, isOurs: false, labels: reading.labels });
}

/** Notes that the value under `place` is tested as a condition. */
export function noteCondition(reading: Reading, place: Place | undefined): void {
  if (place !== undefined) reading.templates.push({ place, condition: true, isOurs: true, labels: reading.labels });
}

/** Line and column of a value. */
export function positionOf(reading: Reading, place: Place): Position {
  return reading.locate(place.valueStart);
}

/** A schema of a map: only its keys matter here. */
interface Keys {
  readonly entries: Readonly<Record<string, unknown>>;
}

/** Forms of earlier versions that are refused wherever they stand, and what is written today. */
export const REMOVED_KEYS: Readonly<Record<string, string>> = {
  eval: "write `spec.policy.rules`: a list of `{when, then: {do: …}}`",
  expr: "write the condition as `when`",
};

/** {@link REMOVED_KEYS}, and the blocks of a step that are gone. */
export const REMOVED_STEP_KEYS: Readonly<Record<string, string>> = {
  ...REMOVED_KEYS,
  case: "write `next: {spec: {mode: exclusive}, arcs: [{step: …, when: …}]}`, or rules in a task's `spec.policy.rules`",
  sink: "save with an ordinary task at the end of the step's `tool` list, e.g. `kind: sqldb`",
};

/**
 * Reports keys of a map that no schema has (a warning), or that are gone (an error). Values of other types are left to
 * the check of the shape.
 */
export function checkKeys(
  reading: Reading,
  place: Place | undefined,
  schema: Keys,
  removed: Readonly<Record<string, string>> = REMOVED_KEYS,
): void {
  if (!isMap(place)) return;
  for (const [key, entry] of place.fields) checkKey(reading, key, entry, Object.keys(schema.entries), removed);
}

/** {@link checkKeys} for a single key. */
export function checkKey(
  reading: Reading,
  key: string,
  entry: Place,
  known: readonly string[],
  removed: Readonly<Record<string, string>> = REMOVED_KEYS,
): void {
  if (known.includes(key)) return;
  if (Object.hasOwn(removed, key)) {
    reading.report("removed-form", entry, `\`${key}\` is no longer part of the language`, removed[key], entry.start);
  } else if (key === "<<") {
    const hint = "YAML 1.2 has no merge keys: write the keys out";
    reading.report("unknown-key", entry, "`<<` means nothing here", hint, entry.start);
  } else {
    const hint = () => didYouMean(key, known) ?? otherWord(key, known);
    reading.report("unknown-key", entry, `\`${key}\` means nothing here`, hint, entry.start);
  }
}

/** Words of other programs, and what is written here. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  cond: "when",
  condition: "when",
  if: "when",
  target: "step",
  to: "step",
  name: "step",
  id: "step",
  foreach: "loop",
  retries: "attempts",
  uri: "url",
};

function otherWord(key: string, known: readonly string[]): string | undefined {
  const word = own(OTHER_WORDS, key);
  return typeof word === "string" && known.includes(word) ? `did you mean \`${word}\`?` : undefined;
}

/** Reports an older spelling. `today` is what is written instead. */
export function legacy(reading: Reading, place: Place, what: string, today: string): void {
  reading.report("legacy-form", place, `${what} is an older form`, `today: ${today}`, place.start);
}

/** Reports a number that is not a whole one from 1. Templates are left to the run. */
export function checkCount(reading: Reading, place: Place | undefined): void {
  if (typeof place?.value !== "number" || (Number.isInteger(place.value) && place.value > 0)) return;
  reading.report("wrong-value", place, `\`${place.key}\` must be a whole number from 1, not \`${place.value}\``);
}

/** Reports a number below 0 or above `max`. Templates are left to the run. */
export function checkRange(reading: Reading, place: Place | undefined, max = Number.POSITIVE_INFINITY): void {
  if (typeof place?.value !== "number" || (place.value >= 0 && place.value <= max)) return;
  const range = max === Number.POSITIVE_INFINITY ? "must not be negative" : `must be from 0 to ${max}`;
  reading.report("wrong-value", place, `\`${place.key}\` ${range}, not \`${place.value}\``);
}
