import { Admit, AdmitAction, AdmitRule } from "../../schema/documents/document.ts";
import type { Schema } from "../../schema/documents/document-forms.ts";
import { PolicyRule, RuleAction, WrappedAction } from "../../schema/documents/document-task.ts";
import type { Json } from "../../schema/words/json.ts";
import type { AdmitRule as Admission, Backoff, PolicyRule as Rule } from "../../schema/words/playbook.ts";
import { POLICY_ACTIONS, type PolicyAction } from "../../schema/words/playbook.ts";
import { mergeAssignments, readAssignments } from "./assignments.ts";
import { checkShape } from "./shape.ts";
import { didYouMean } from "./source/hints.ts";
import { field, firstField, isMap, type Place, textOf } from "./source/place.ts";
import {
  checkCount,
  checkKey,
  checkKeys,
  checkRange,
  legacy,
  noteCondition,
  noteTemplate,
  type Reading,
} from "./source/reading.ts";

/** The rules of `spec.policy.rules` (language document, section 5.5). `labels` are the step's tasks in order. */
export function readPolicy(
  reading: Reading,
  rules: Place | undefined,
  labels: readonly string[],
  index: number,
): Rule[] {
  const policy: Rule[] = [];
  for (const place of rules?.items ?? []) {
    const parts = readParts(reading, place, PolicyRule, RuleAction);
    if (parts === undefined) continue;
    const rule: Rule = { ...readAction(reading, parts.action), ...parts.when };
    if (rule.do === "jump") rule.to = readJump(reading, parts.action, labels, index);
    policy.push(rule);
  }
  return policy;
}

/** The rules of `spec.policy.admit.rules` (language document, section 2). */
export function readAdmission(reading: Reading, admit: Place | undefined): Admission[] {
  checkKeys(reading, admit, Admit);
  const rules: Admission[] = [];
  for (const place of field(admit, "rules")?.items ?? []) {
    const parts = readParts(reading, place, AdmitRule, AdmitAction);
    const allow = field(parts?.action, "allow");
    if (parts === undefined || allow === undefined) continue;
    noteCondition(reading, allow);
    rules.push({ ...parts.when, allow: allow.value });
  }
  return rules;
}

type RuleSchema = Schema & { readonly entries: Readonly<Record<string, unknown>> };

interface Parts {
  when: { when?: Json };
  action: Place;
}

/**
 * Condition and action of a rule in all its spellings: `{when, then}`, `{else: {then: {…}}}`, `{else: {…}}`,
 * `{else: null, then: {…}}`, and the older `{when, …}` with the action beside the condition.
 */
function readParts(reading: Reading, place: Place, rule: RuleSchema, action: RuleSchema): Parts | undefined {
  if (!isMap(place)) return undefined;
  const isElse = place.fields.has("else");
  const otherwise = field(place, "else");
  const wrapped = isMap(otherwise) && otherwise.fields.has("then");
  if (wrapped) checkKeys(reading, otherwise, WrappedAction);
  const named = wrapped ? field(otherwise, "then") : (otherwise ?? field(place, "then"));
  const inline = named === undefined && [...place.fields.keys()].some((key) => Object.hasOwn(action.entries, key));
  if (inline) {
    legacy(reading, place, "a rule without `then`", "`{when: …, then: {…}}`");
    checkShape(place, action, reading.report);
  }
  const known = [...Object.keys(rule.entries), ...(inline ? Object.keys(action.entries) : [])];
  for (const [key, entry] of place.fields) checkKey(reading, key, entry, known);
  if (named === undefined && !inline) {
    const hint = place.fields.has("expr") || place.fields.has("eval") ? undefined : "add `then: {…}`";
    reading.report("missing-key", place, "the rule says nothing to do", hint);
    return undefined;
  }
  if (named !== undefined) checkKeys(reading, named, action);
  const when = isElse ? undefined : place.fields.get("when");
  noteCondition(reading, when);
  return { when: when === undefined ? {} : { when: when.value }, action: named ?? place };
}

function readAction(reading: Reading, action: Place): Rule {
  const rule: Rule = { do: readDo(reading, action), set: readRuleSet(reading, action) };
  const attempts = firstField(action, "attempts", "max_attempts");
  const delay = firstField(action, "delay", "initial_delay");
  const jitter = field(action, "jitter");
  const maxElapsed = field(action, "max_elapsed");
  for (const place of [attempts, delay, jitter, maxElapsed]) noteTemplate(reading, place);
  checkCount(reading, attempts);
  checkRange(reading, delay);
  checkRange(reading, jitter, 1);
  checkRange(reading, maxElapsed);
  if (attempts !== undefined) rule.attempts = attempts.value;
  if (delay !== undefined) rule.delay = delay.value;
  if (jitter !== undefined) rule.jitter = jitter.value;
  if (maxElapsed !== undefined) rule.maxElapsed = maxElapsed.value;
  const backoff = readBackoff(field(action, "backoff"));
  if (backoff !== undefined) rule.backoff = backoff;
  for (const key of ["message", "code"] as const) {
    const place = field(action, key);
    if (place === undefined) continue;
    noteTemplate(reading, place);
    if (rule.do === "fail") rule[key] = place.value;
    else
      reading.report(
        "unknown-key",
        place,
        `\`${key}\` means nothing beside \`do: ${rule.do}\``,
        "it says why a rule fails the task: `do: fail`",
        place.start,
      );
  }
  return rule;
}

/** `constant` is `fixed`. */
export function readBackoff(place: Place | undefined): Backoff | undefined {
  const word = textOf(place);
  return word === undefined ? undefined : word === "constant" ? "fixed" : (word as Backoff);
}

function readDo(reading: Reading, action: Place): PolicyAction {
  const place = field(action, "do");
  if (place === undefined) {
    reading.report("missing-action", action, "the rule has no `do`; it continues", "add `do: continue`");
    return "continue";
  }
  const word = textOf(place);
  if (word === undefined) return "continue";
  const known = POLICY_ACTIONS.find((candidate) => candidate === word);
  if (known === undefined) {
    const hint = () => didYouMean(word, POLICY_ACTIONS) ?? `use one of ${POLICY_ACTIONS.join(", ")}`;
    reading.report("unknown-action", place, `\`${word}\` is nothing that a rule can do`, hint);
  }
  return known ?? "continue";
}

/** `set` as written, `set_ctx` and `set_iter` into their scopes. */
function readRuleSet(reading: Reading, action: Place): Rule["set"] {
  return mergeAssignments(
    readAssignments(reading, field(action, "set_ctx"), "ctx"),
    readAssignments(reading, field(action, "set_iter"), "iter"),
    readAssignments(reading, field(action, "set"), "ctx"),
  );
}

const PREVIOUS = ["previous", "prev", "_previous", "@previous"];

/** The label that a `jump` goes to; every spelling of "the task before" becomes `previous`. */
function readJump(reading: Reading, action: Place, labels: readonly string[], index: number): string {
  const place = field(action, "to");
  const to = textOf(place);
  if (to === undefined) {
    if (place === undefined) reading.report("unknown-label", action, "`jump` names no task", "add `to: <label>`");
    return "";
  }
  if (labels.includes(to)) return to;
  if (PREVIOUS.includes(to)) {
    if (index === 0) reading.report("unknown-label", place, `there is no task before this one to jump to`);
    return "previous";
  }
  const hint = () => didYouMean(to, labels) ?? `tasks of this step: ${labels.slice(0, 20).join(", ")}`;
  reading.report("unknown-label", place, `\`${to}\` is no task of this step`, hint);
  return to;
}
