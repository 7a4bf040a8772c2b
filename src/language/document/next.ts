import { ArcBody, NextBody, NextBranch, NextSpec } from "../../schema/documents/document.ts";
import type { Json } from "../../schema/words/json.ts";
import type { Arc, Next } from "../../schema/words/playbook.ts";
import { mergeAssignments, readAssignments } from "./assignments.ts";
import { wholeTemplate } from "./durations.ts";
import { field, isMap, type Place, textOf } from "./source/place.ts";
import {
  checkKeys,
  legacy,
  noteCondition,
  noteTemplate,
  positionOf,
  REMOVED_STEP_KEYS,
  type Reading,
} from "./source/reading.ts";

/** Reads `next` in all its forms (language document, section 7). */
export function readNext(reading: Reading, place: Place | undefined): Next {
  const next: Next = { mode: "exclusive", onNoMatch: "notice", arcs: [] };
  if (place === undefined) return next;
  if (isMap(place) && !["step", "then", "else"].some((key) => place.fields.has(key))) {
    readSpec(reading, place, next);
    next.arcs = (field(place, "arcs")?.items ?? []).flatMap((arc) => readArc(reading, arc) ?? []);
    return next;
  }
  legacy(reading, place, "this form of `next`", "`next: {spec: {mode: …}, arcs: [{step: …, when: …}]}`");
  const entries = Array.isArray(place.value) ? place.items : [place];
  const branches = entries.map((entry) => readBranch(reading, entry));
  const namesOnly = Array.isArray(place.value) && entries.every((entry) => textOf(entry) !== undefined);
  if (namesOnly) return { ...next, mode: "inclusive", arcs: branches.flatMap((branch) => branch.arcs) };
  // An `else` decides last, wherever it is written.
  const ordered = [...branches.filter((branch) => !branch.isElse), ...branches.filter((branch) => branch.isElse)];
  if (ordered.every((branch) => branch.arcs.length <= 1)) {
    return { ...next, arcs: ordered.flatMap((branch) => combine(reading, branch, [])) };
  }
  // A branch with several targets fires all of them: arcs of an inclusive choice that exclude the earlier branches.
  const arcs = ordered.flatMap((branch, index) => combine(reading, branch, ordered.slice(0, index)));
  return { ...next, mode: "inclusive", arcs };
}

function readSpec(reading: Reading, place: Place, next: Next): void {
  checkKeys(reading, place, NextBody, REMOVED_STEP_KEYS);
  const spec = field(place, "spec");
  checkKeys(reading, spec, NextSpec);
  if (field(spec, "mode")?.value === "inclusive") next.mode = "inclusive";
  const onNoMatch = textOf(field(spec, "on_no_match"));
  if (onNoMatch === "quiet" || onNoMatch === "error") next.onNoMatch = onNoMatch;
}

/** One arc from its map or, in older forms, from the target's name alone. */
function readArc(reading: Reading, place: Place): Arc | undefined {
  checkKeys(reading, place, ArcBody, REMOVED_STEP_KEYS);
  const target = textOf(place) === undefined ? field(place, "step") : place;
  const step = textOf(target);
  if (target === undefined || step === undefined) return undefined;
  reading.targets.push({ place: target, name: step });
  noteTemplate(reading, target);
  const when = place.fields.get("when");
  noteCondition(reading, when);
  const set = mergeAssignments(
    ...["input", "args", "set"].map((key) => readAssignments(reading, field(place, key), "ctx")),
  );
  return { step, ...(when === undefined ? {} : { when: when.value }), set, position: positionOf(reading, place) };
}

/** One entry of an older list: its own condition, and the arcs that fire when it holds. */
interface Branch {
  place: Place;
  isElse: boolean;
  when: { when?: Json };
  arcs: Arc[];
}

function readBranch(reading: Reading, place: Place): Branch {
  if (!isMap(place) || place.fields.has("step")) {
    const arc = readArc(reading, place);
    const { when, ...bare } = arc ?? { when: undefined };
    const condition: Branch["when"] = when === undefined ? {} : { when };
    return { place, isElse: false, when: condition, arcs: arc === undefined ? [] : [bare as Arc] };
  }
  checkKeys(reading, place, NextBranch, REMOVED_STEP_KEYS);
  const isElse = place.fields.has("else");
  const targets = field(place, "else") ?? field(place, "then");
  const entries = targets === undefined ? [] : Array.isArray(targets.value) ? targets.items : [targets];
  const when = isElse ? undefined : place.fields.get("when");
  noteCondition(reading, when);
  const arcs = entries.flatMap((entry) => readArc(reading, entry) ?? []);
  return { place, isElse, when: when === undefined ? {} : { when: when.value }, arcs };
}

/** The arcs of a branch, each with the condition of the branch, its own, and that none of `earlier` held. */
function combine(reading: Reading, branch: Branch, earlier: readonly Branch[]): Arc[] {
  return branch.arcs.map((arc) => {
    const positive = [branch.when, arc].flatMap((part) => (part.when === undefined ? [] : [part.when]));
    const negative = earlier.map((other) => other.when.when ?? true);
    if (negative.length === 0 && positive.length <= 1) {
      return positive[0] === undefined ? arc : { ...arc, when: positive[0] };
    }
    const terms = [...positive.map(asExpression), ...negative.map(negated)];
    if (terms.includes(undefined)) {
      const hint = "write `next.arcs` with `spec.mode: inclusive`, one arc per target";
      reading.report(
        "wrong-value",
        branch.place,
        "these conditions cannot be joined: one mixes text and templates",
        hint,
      );
    }
    return { ...arc, when: `{{ ${terms.length === 1 ? terms[0] : terms.map((term) => `(${term})`).join(" and ")} }}` };
  });
}

function negated(when: Json): string | undefined {
  const expression = asExpression(when);
  return expression === undefined ? undefined : `not (${expression})`;
}

/** A condition as the text of an expression; undefined where text and templates are mixed. */
function asExpression(when: Json): string | undefined {
  if (typeof when !== "string") return when === null ? "none" : JSON.stringify(when);
  if (!when.includes("{{") && !when.includes("{%")) return when.trim() === "" ? "false" : when.trim();
  return wholeTemplate(when);
}
