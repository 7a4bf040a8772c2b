import * as v from "valibot";
import { RESULT_COMPRESSIONS, RESULT_SCOPES, RESULT_STORES } from "../api/results.ts";
import { isJsonObject } from "../words/json.ts";
import { MERGE_STRATEGIES } from "../words/manifest.ts";
import { POLICY_ACTIONS } from "../words/playbook.ts";
import { KNOWN_KINDS } from "../words/task-kinds.ts";
import {
  anyMap,
  assignments,
  byShape,
  condition,
  flag,
  hasKey,
  INPUT,
  key,
  map,
  mapOf,
  numberOrTemplate,
  required,
  SECONDS,
  text,
  WHEN,
} from "./document-forms.ts";

/* The part of a playbook document that says what a step does: `tool`, its tasks, their rules and results. */

/** One extracted field of a stored result. */
export const ResultField = map({
  path: required(text, "JSONPath of the field in the result."),
  as: key(text, "Name that the field is read by; default the last name of the path."),
});

/** `spec.result.store` (interface specification, Task result configuration). */
export const StoreForm = map({
  kind: key(
    v.union([v.picklist(["auto", ...RESULT_STORES]), text]),
    "Where: `auto` (by size, the default), kv, s3, cloud_bucket, sqldb or disk.",
  ),
  scope: key(
    v.union([v.picklist(RESULT_SCOPES), text]),
    "With what it ends: its step, its execution, the root execution, or (`permanent`, the default) its time alone.",
  ),
  ttl: key(numberOrTemplate, "How long it is kept: 90s, 15m, 1h, 30d, or a number of seconds."),
  compression: key(
    v.union([v.picklist(RESULT_COMPRESSIONS), text]),
    "gzip or none; without it what the store finds worth.",
  ),
});

/** `spec.result.accumulate` (interface specification, Manifest). */
export const AccumulateForm = map({
  strategy: key(v.union([v.picklist(MERGE_STRATEGIES), text]), "append, concat, merge or replace."),
  merge_path: key(text, "Path into each result, as `$.data.items`: what of it is joined."),
});

const fieldList = v.array(v.union([text, ResultField]));
/** A map, as some documents have it, says nothing that is known here: it is passed over with a warning. */
const fieldsForm = byShape(v.union([fieldList, anyMap]), (value) => (isJsonObject(value) ? anyMap : fieldList));

/** How a result is stored: `spec.result`, `output` (language document, section 8). */
export const ResultStorage = map({
  inline_max_bytes: key(v.number(), "Largest result that is kept inline, in bytes; default 65,536, at most 1,048,576."),
  preview_max_bytes: key(v.number(), "Size of the preview of a stored result, in bytes; default 2,048."),
  store: key(
    byShape(v.union([text, StoreForm]), (value) => (typeof value === "string" ? text : StoreForm)),
    "Where larger results go: `{kind, scope, ttl, compression}`, or the kind alone.",
  ),
  select: key(fieldsForm, "Fields that stay readable without loading the result."),
  output_select: key(fieldsForm, "The same as `select`."),
  accumulate: key(
    byShape(v.union([text, AccumulateForm]), (value) => (typeof value === "string" ? text : AccumulateForm)),
    "What the results of several runs of a task, or of a loop's iterations, become: `{strategy, merge_path}`.",
  ),
  sensitive: key(flag, "The result never stands in an event, log or preview."),
});

const backoffName = v.picklist(["none", "fixed", "constant", "linear", "exponential"]);

/** What a policy rule does (language document, section 5.5). */
export const RuleAction = map({
  do: key(v.union([v.picklist(POLICY_ACTIONS), text]), "continue, retry, jump, break or fail."),
  to: key(text, "Label that `jump` goes to, or `previous`."),
  attempts: key(numberOrTemplate, "Total runs of the task with `retry`; default 3."),
  max_attempts: key(numberOrTemplate, "The same as `attempts`."),
  backoff: key(backoffName, "How the delay grows."),
  delay: key(numberOrTemplate, "Seconds before the next run."),
  initial_delay: key(numberOrTemplate, "The same as `delay`."),
  jitter: key(v.union([flag, numberOrTemplate]), "Spreads the delay: true, or a share from 0 to 1."),
  max_elapsed: key(numberOrTemplate, "Seconds after which no further run is made."),
  message: key(text, "With `fail`: why, as the error's message."),
  code: key(text, "With `fail`: the error's code, a word that arcs and callers can ask for."),
  set: key(assignments, "Assignments made when this rule is chosen."),
  set_ctx: key(assignments, "Assignments to variables of the execution."),
  set_iter: key(assignments, "Assignments to variables of the iteration."),
});

/** `{else: {then: {…}}}`: the action of an `else`, wrapped once more. */
export const WrappedAction = map({ then: required(RuleAction, "What happens.") });

/** One rule of `spec.policy.rules`; the first that matches decides. */
export const PolicyRule = map({
  when: key(condition, WHEN),
  then: key(RuleAction, "What happens when the condition holds."),
  else: key(
    byShape(v.union([RuleAction, WrappedAction]), (value) => (hasKey(value, "then") ? WrappedAction : RuleAction)),
    "What happens when no rule matched.",
  ),
});

/** `spec.policy` of a task. */
export const TaskPolicy = map({ rules: key(v.array(PolicyRule), "Rules for the task's outcome.") });

/** `spec` of a task. Any other key stands for the task key of the same name. */
export const TaskSpec = map({
  policy: key(TaskPolicy, "What follows from the task's outcome."),
  result: key(ResultStorage, "How the result is stored."),
  timeout: key(numberOrTemplate, SECONDS),
});

const legacyBackoff = byShape(v.union([backoffName, v.number()]), (value) =>
  typeof value === "number" ? v.number() : backoffName,
);

/** `retry` of earlier versions: one retry rule for errors. */
export const LegacyRetry = map({
  max_attempts: key(numberOrTemplate, "Total runs."),
  attempts: key(numberOrTemplate, "Total runs."),
  delay: key(numberOrTemplate, SECONDS),
  initial_delay: key(numberOrTemplate, SECONDS),
  backoff: key(legacyBackoff, "How the delay grows; a number is a delay that does not."),
});

const retryForms = v.union([v.number(), flag, LegacyRetry]);

/** `timeout` of an http task in parts, as other clients have it. */
export const TimeoutParts = map({
  connect: key(numberOrTemplate, SECONDS),
  read: key(numberOrTemplate, SECONDS),
  write: key(numberOrTemplate, SECONDS),
  pool: key(numberOrTemplate, SECONDS),
  total: key(numberOrTemplate, "Seconds for all of it, instead of the sum of the parts."),
});

const timeoutForm = byShape(v.union([numberOrTemplate, TimeoutParts]), (value) =>
  isJsonObject(value) ? TimeoutParts : numberOrTemplate,
);

const list = v.array(v.unknown());

/** Keys that every task has, whatever its kind (language document, section 3). */
export const TaskBody = map({
  kind: required(v.union([v.picklist(KNOWN_KINDS), text]), "What runs the task."),
  name: key(text, "Label of the task; for kind `workbook` the name of the tool."),
  desc: key(text, "Free text."),
  input: key(anyMap, INPUT),
  args: key(
    byShape(v.union([anyMap, list]), (value) => (Array.isArray(value) ? list : anyMap)),
    "The same as `input`; of a kind that nothing here runs (container) also a list.",
  ),
  auth: key(v.union([text, anyMap]), "Credential: its name, or a map."),
  credential: key(v.union([text, anyMap]), "The same as `auth`."),
  timeout: key(timeoutForm, `${SECONDS} Of http also \`{connect, read}\`.`),
  timeout_seconds: key(numberOrTemplate, SECONDS),
  timeout_ms: key(numberOrTemplate, "Milliseconds, as a number or a template."),
  spec: key(TaskSpec, "Policy, result storage and time-out."),
  set: key(assignments, "Assignments for the later tasks of the pipeline."),
  output: key(ResultStorage, "The same as `spec.result`."),
  output_select: ResultStorage.entries.output_select,
  retry: key(
    byShape(retryForms, (value) => (isJsonObject(value) ? LegacyRetry : retryForms)),
    "Earlier form of a retry rule.",
  ),
});

/** Tasks by label. */
export const LabelledTasks = mapOf(TaskBody);

const taskEntry = byShape(v.union([TaskBody, LabelledTasks]), (value) =>
  isLabelled(value) ? LabelledTasks : TaskBody,
);
const toolList = v.array(taskEntry);

/** `tool` in all its forms. */
export const ToolForms = v.union([TaskBody, LabelledTasks, toolList, text]);

/** {@link ToolForms}, chosen by the value's shape. */
export const tool = byShape(ToolForms, (value) => {
  if (typeof value === "string") return text;
  if (Array.isArray(value)) return toolList;
  return isJsonObject(value) ? taskEntry : ToolForms;
});

/** True for a map of tasks by their labels, as opposed to one task: it has no `kind`, and its values are maps. */
export function isLabelled(value: unknown): boolean {
  if (!isJsonObject(value) || (Object.hasOwn(value, "kind") && !isJsonObject(value["kind"]))) return false;
  const bodies = Object.values(value).filter((body) => body !== null);
  return bodies.length > 0 && bodies.every(isJsonObject);
}
