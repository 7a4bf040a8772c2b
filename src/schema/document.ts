import * as v from "valibot";
import { isJsonObject } from "./json.ts";
import { POLICY_ACTIONS } from "./playbook.ts";
import { KNOWN_KINDS } from "./task-kinds.ts";

/*
 * The playbook document as authors write it: the one definition of its keys. The loader takes from here which keys a map
 * has and which types they take, and `playbooks/playbook.schema.json` is generated from here.
 *
 * Maps are open: an unknown key is a warning, never an error. A key that is present but empty counts as absent. Where a
 * value has several forms, `byShape` picks the one that the value looks like, so that a message is about that form.
 */

/** What {@link PlaybookDocument} is made of: any schema without transformation. */
type Schema = v.GenericSchema<unknown, unknown>;

/** A key that may be absent or empty. */
function key<S extends Schema>(schema: S, description: string) {
  return v.exactOptional(v.pipe(v.nullable(schema), v.description(description)));
}

/** A key that must be there. */
function required<S extends Schema>(schema: S, description: string) {
  return v.pipe(schema, v.description(description));
}

/** One of several forms, chosen by looking at the value. Without a value it is the union of them, for JSON Schema. */
function byShape(union: Schema, pick: (value: unknown) => Schema) {
  return v.lazy((value) => (value === undefined ? union : pick(value)));
}

const text = v.string();
const flag = v.boolean();
const anything = v.unknown();
const map = v.record(v.string(), v.unknown());
const numberOrTemplate = v.union([v.number(), v.string()]);
const condition = v.union([v.boolean(), v.string(), v.number()]);
const assignments = v.record(v.string(), v.unknown());

const WHEN = "Condition: a template, or an expression without braces.";
const INPUT = "Inputs by name, with templates.";
const SECONDS = "Seconds, as a number or a template.";

/** One extracted field of a stored result. */
export const ResultField = v.object({
  path: required(text, "JSONPath of the field in the result."),
  as: key(text, "Name that the field is read by; default the last name of the path."),
});

/** How a result is stored: `spec.result`, `output` (language document, section 8). */
export const ResultStorage = v.object({
  inline_max_bytes: key(v.number(), "Largest result that is kept inline, in bytes; default 65,536."),
  preview_max_bytes: key(v.number(), "Size of the preview of a stored result, in bytes; default 2,048."),
  store: key(
    byShape(v.union([text, map]), (value) => (typeof value === "string" ? text : map)),
    "Where larger results go: `{kind, scope, ttl, compression}`.",
  ),
  select: key(v.array(v.union([text, ResultField])), "Fields that stay readable without loading the result."),
  output_select: key(v.array(v.union([text, ResultField])), "The same as `select`."),
  accumulate: key(map, "How the parts of several runs are joined: `{strategy, merge_path}`."),
  sensitive: key(flag, "The result never stands in an event, log or preview."),
});

/** What a policy rule does (language document, section 5.5). */
export const RuleAction = v.object({
  do: key(v.union([v.picklist(POLICY_ACTIONS), text]), "continue, retry, jump, break or fail."),
  to: key(text, "Label that `jump` goes to, or `previous`."),
  attempts: key(numberOrTemplate, "Total runs of the task with `retry`; default 3."),
  max_attempts: key(numberOrTemplate, "The same as `attempts`."),
  backoff: key(v.picklist(["none", "fixed", "constant", "linear", "exponential"]), "How the delay grows."),
  delay: key(numberOrTemplate, "Seconds before the next run."),
  initial_delay: key(numberOrTemplate, "The same as `delay`."),
  jitter: key(v.union([flag, numberOrTemplate]), "Spreads the delay: true, or a share from 0 to 1."),
  max_elapsed: key(numberOrTemplate, "Seconds after which no further run is made."),
  set: key(assignments, "Assignments made when this rule is chosen."),
  set_ctx: key(assignments, "Assignments to variables of the execution."),
  set_iter: key(assignments, "Assignments to variables of the iteration."),
});

/** `{else: {then: {…}}}`: the action of an `else`, wrapped once more. */
export const WrappedAction = v.object({ then: required(RuleAction, "What happens.") });

/** One rule of `spec.policy.rules`; the first that matches decides. */
export const PolicyRule = v.object({
  when: key(condition, WHEN),
  then: key(RuleAction, "What happens when the condition holds."),
  else: key(
    byShape(v.union([RuleAction, WrappedAction]), (value) => (hasKey(value, "then") ? WrappedAction : RuleAction)),
    "What happens when no rule matched.",
  ),
});

/** What an admission rule says. */
export const AdmitAction = v.object({ allow: required(condition, "Whether the step may run.") });

/** `{else: {then: {allow: …}}}`. */
export const WrappedAdmit = v.object({ then: required(AdmitAction, "Whether the step may run.") });

/** One rule of a step's `spec.policy.admit.rules`. */
export const AdmitRule = v.object({
  when: key(condition, WHEN),
  then: key(AdmitAction, "Decision when the condition holds."),
  else: key(
    byShape(v.union([AdmitAction, WrappedAdmit]), (value) => (hasKey(value, "then") ? WrappedAdmit : AdmitAction)),
    "Decision when no rule matched.",
  ),
});

/** `spec.policy` of a task. */
export const TaskPolicy = v.object({ rules: key(v.array(PolicyRule), "Rules for the task's outcome.") });

/** `spec` of a task. Any other key stands for the task key of the same name. */
export const TaskSpec = v.object({
  policy: key(TaskPolicy, "What follows from the task's outcome."),
  result: key(ResultStorage, "How the result is stored."),
  timeout: key(numberOrTemplate, SECONDS),
});

/** `retry` of earlier versions: one retry rule for errors. */
export const LegacyRetry = v.object({
  max_attempts: key(numberOrTemplate, "Total runs."),
  attempts: key(numberOrTemplate, "Total runs."),
  delay: key(numberOrTemplate, SECONDS),
  initial_delay: key(numberOrTemplate, SECONDS),
  backoff: RuleAction.entries.backoff,
});

/** Keys that every task has, whatever its kind (language document, section 3). */
export const TaskBody = v.object({
  kind: required(v.union([v.picklist(KNOWN_KINDS), text]), "What runs the task."),
  name: key(text, "Label of the task; for kind `workbook` the name of the tool."),
  desc: key(text, "Free text."),
  input: key(map, INPUT),
  args: key(map, "The same as `input`."),
  auth: key(v.union([text, map]), "Credential: its name, or a map."),
  credential: key(v.union([text, map]), "The same as `auth`."),
  timeout: key(numberOrTemplate, SECONDS),
  timeout_seconds: key(numberOrTemplate, SECONDS),
  timeout_ms: key(numberOrTemplate, "Milliseconds, as a number or a template."),
  spec: key(TaskSpec, "Policy, result storage and time-out."),
  set: key(assignments, "Assignments for the later tasks of the pipeline."),
  output: key(ResultStorage, "The same as `spec.result`."),
  output_select: ResultStorage.entries.output_select,
  retry: key(v.union([v.number(), flag, LegacyRetry]), "Earlier form of a retry rule."),
});

/** Tasks by label. */
export const LabelledTasks = v.record(v.string(), TaskBody);

const taskEntry = byShape(v.union([TaskBody, LabelledTasks]), (value) =>
  isLabelled(value) ? LabelledTasks : TaskBody,
);
const toolList = v.array(taskEntry);

/** `tool` in all its forms. */
export const ToolForms = v.union([TaskBody, LabelledTasks, toolList, text]);

const tool = byShape(ToolForms, (value) => {
  if (typeof value === "string") return text;
  if (Array.isArray(value)) return toolList;
  return isJsonObject(value) ? taskEntry : ToolForms;
});

/** True for a map of tasks by their labels, as opposed to one task: no `kind` of its own, and nothing but maps. */
export function isLabelled(value: unknown): boolean {
  if (!isJsonObject(value) || (Object.hasOwn(value, "kind") && !isJsonObject(value["kind"]))) return false;
  const bodies = Object.values(value).filter((body) => body !== null);
  return bodies.length > 0 && bodies.every(isJsonObject);
}

function hasKey(value: unknown, name: string): boolean {
  return isJsonObject(value) && Object.hasOwn(value, name);
}

/** `loop.spec.frame` of a cursor loop. */
export const LoopFrame = v.object({
  max_rows: key(numberOrTemplate, "Rows claimed at once; default 1."),
  max_seconds: key(numberOrTemplate, SECONDS),
  max_bytes: key(numberOrTemplate, "Bytes of rows in one frame."),
  lease_seconds: key(numberOrTemplate, "Seconds that a claim is held; default 120."),
  heartbeat_seconds: key(numberOrTemplate, "Seconds between renewals; default 30."),
  row_concurrency: key(numberOrTemplate, "Rows worked on at once; default 1."),
  process: key(v.picklist(["row", "frame"]), "One iteration per row (default), or one per frame."),
});

const errorMode = v.picklist(["stop", "continue"]);

/** `loop.spec.on_error` with failures that are tolerated (language document, section 12). */
export const Tolerance = v.object({ tolerate: required(numberOrTemplate, "A count, or a share such as `5%`.") });

/** `loop.spec`. */
export const LoopSpec = v.object({
  mode: key(v.picklist(["sequential", "parallel", "async", "cursor"]), "Default sequential."),
  max_in_flight: key(numberOrTemplate, "Most iterations at once; default all."),
  policy: key(
    v.object({ exec: key(v.picklist(["distributed", "local"]), "One command per iteration, or one for all.") }),
    "How iterations are carried out.",
  ),
  on_error: key(
    byShape(v.union([errorMode, Tolerance]), (value) => (typeof value === "string" ? errorMode : Tolerance)),
    "stop, continue, or `{tolerate: 5% | n}`.",
  ),
  frame: key(LoopFrame, "How rows are claimed."),
});

/** `loop.cursor`. */
export const LoopCursor = v.object({
  kind: required(text, "Kind of the database."),
  auth: key(v.union([text, map]), "Credential."),
  claim: required(text, "Statement that claims and returns rows; `__frame_max_rows` is how many."),
});

/** `loop` of a step (language document, section 6). */
export const LoopBody = v.object({
  in: key(anything, "Collection, with templates."),
  collection: key(anything, "Earlier name of `in`."),
  cursor: key(LoopCursor, "Rows claimed from a database instead of a collection."),
  iterator: key(text, "Name of the item; default `item`."),
  element: key(text, "The same as `iterator`."),
  mode: key(v.picklist(["sequential", "parallel", "async", "cursor"]), "Earlier place of `spec.mode`."),
  spec: key(LoopSpec, "How the loop runs."),
});

/** One arc (language document, section 7). */
export const ArcBody = v.object({
  step: required(text, "Name of the next step, or a template that gives it."),
  when: key(condition, WHEN),
  set: key(assignments, "Set when the arc fires; also the inputs of the next step."),
  args: key(assignments, "The same as `set`."),
  input: key(assignments, "The same as `set`."),
});

const arcEntry = byShape(v.union([text, ArcBody]), (value) => (typeof value === "string" ? text : ArcBody));
const arcList = v.array(arcEntry);
const arcs = byShape(v.union([text, ArcBody, arcList]), (value) => (Array.isArray(value) ? arcList : arcEntry));

/** `{when, then: […]}` or `{else: […]}` of earlier versions. */
export const NextBranch = v.object({
  when: key(condition, WHEN),
  then: key(arcs, "Next steps when the condition holds."),
  else: key(arcs, "Next steps when no condition held."),
});

/** `next` in today's form. */
export const NextBody = v.object({
  spec: key(
    v.object({
      mode: key(v.picklist(["exclusive", "inclusive"]), "First match (default), or all."),
      on_no_match: key(v.picklist(["notice", "quiet", "error"]), "What happens when no arc matches."),
    }),
    "How arcs are chosen.",
  ),
  arcs: key(v.array(ArcBody), "Arcs in order."),
});

const nextEntry = byShape(v.union([text, ArcBody, NextBranch]), (value) => {
  if (typeof value === "string") return text;
  return isBranch(value) ? NextBranch : ArcBody;
});
const nextList = v.array(nextEntry);

/** `next` in all its forms. */
export const NextForms = v.union([NextBody, ArcBody, NextBranch, nextList, text]);

const next = byShape(NextForms, (value) => {
  if (Array.isArray(value)) return nextList;
  if (typeof value === "string") return text;
  if (!isJsonObject(value)) return NextForms;
  return hasKey(value, "step") || isBranch(value) ? nextEntry : NextBody;
});

/** True for `{when, then}` and `{else}`, as opposed to an arc. */
export function isBranch(value: unknown): boolean {
  return !hasKey(value, "step") && (hasKey(value, "then") || hasKey(value, "else"));
}

/** `spec` of a step. */
export const StepSpec = v.object({
  policy: key(
    v.object({
      admit: key(v.object({ rules: key(v.array(AdmitRule), "Rules in order.") }), "Whether the step may run."),
    }),
    "Admission.",
  ),
  result: key(ResultStorage, "How the result is stored."),
  output: key(ResultStorage, "The same as `result`."),
  timeout: key(numberOrTemplate, SECONDS),
});

/** One step (language document, section 2). */
export const StepBody = v.object({
  step: required(text, "Name, unique in the workflow."),
  desc: key(text, "Free text."),
  tool: key(tool, "What the step does: one task, or several in order."),
  input: key(map, INPUT),
  args: key(map, "The same as `input`."),
  when: key(condition, "Guard: the step is skipped when it does not hold."),
  loop: key(LoopBody, "Runs the step once per item."),
  set: key(assignments, "Assignments after success."),
  vars: key(assignments, "The same as `set`."),
  spec: key(StepSpec, "Admission, result storage and time-out."),
  output: key(ResultStorage, "The same as `spec.result`."),
  output_select: ResultStorage.entries.output_select,
  next: key(next, "What follows."),
});

/** `metadata`. */
export const Metadata = v.object({
  name: required(text, "Name of the playbook."),
  path: key(text, "Catalog path; default the name."),
  description: key(anything, "What the playbook is for."),
  version: key(anything, "Free."),
  tags: key(anything, "Free."),
  labels: key(anything, "Free."),
  agent: key(flag, "True for an executable agent."),
  terminal: key(map, "How terminals show the agent."),
  exposes_as_mcp: key(anything, "Whether the playbook is offered as an MCP tool."),
});

/** `executor`. */
export const ExecutorBody = v.object({
  profile: key(v.picklist(["local", "distributed", "auto"]), "Which runtime the playbook is for."),
  version: key(anything, "Version of the runtime."),
  requires: key(
    v.object({
      tools: key(v.array(text), "Kinds of task that a runtime must run."),
      features: key(v.array(text), "Features that a runtime must have."),
    }),
    "What the playbook needs.",
  ),
  spec: key(
    v.object({
      entry_step: key(text, "Where a run starts; default `start`, else the first step."),
      final_step: key(text, "Runs once when nothing else is left."),
      no_next_is_error: key(flag, "Fails the run where no arc matches."),
      timeout: key(numberOrTemplate, SECONDS),
    }),
    "How a run behaves.",
  ),
});

/** One entry of `keychain` (language document, section 9). */
export const KeychainEntry = v.object({
  name: required(text, "Read as `keychain.<name>`."),
  kind: required(
    text,
    "secret_manager, oauth2, http, bearer, static, credential, google_id_token or `<type>_credential`.",
  ),
  provider: key(text, "Secret manager."),
  scope: key(v.picklist(["global", "local", "shared"]), "Who may read the entry; default global."),
  auth: key(v.union([text, map]), "Credential that reaches the secret manager."),
  map: key(map, "Field name to secret path."),
  auto_renew: key(flag, "Renew on expiry."),
  ttl_seconds: key(numberOrTemplate, "Lifetime in seconds."),
  endpoint: key(text, "Address of the token request."),
  method: key(text, "Method of the token request."),
  headers: key(map, "Headers of the token request."),
  data: key(anything, "Body of the token request, or the fields of a static entry."),
  credential: key(anything, "Credential that the entry reads."),
  target_audience: key(text, "Audience of an identity token."),
  token: key(text, "Token of a bearer entry."),
  token_field: key(text, "Field of the answer that holds the token; default access_token."),
  ttl_field: key(text, "Field of the answer that holds the lifetime; default expires_in."),
  renew_config: key(map, "Request that renews the entry."),
  schema: key(map, "Fields that the data must have."),
});

/** One entry of `workbook`: a named tool. */
export const WorkbookEntry = v.object({
  name: required(text, "Name that tasks of kind `workbook` use."),
  desc: key(text, "Free text."),
  tool: required(tool, "One task."),
  input: key(map, "Default inputs."),
  args: key(map, "The same as `input`."),
});

/** The document (language document, section 1). */
export const PlaybookDocument = v.object({
  apiVersion: required(v.pipe(text, v.regex(/^[^\s/]\S*\/v2$/)), "Vendor-prefixed version: `<vendor>/v2`."),
  kind: required(v.picklist(["Playbook", "Agent"]), "Playbook."),
  metadata: required(Metadata, "Name and path."),
  workload: key(map, "Default inputs; those of the request replace top-level keys."),
  executor: key(ExecutorBody, "How a run behaves."),
  keychain: key(v.array(KeychainEntry), "Tokens and secrets by name."),
  workbook: key(v.array(WorkbookEntry), "Named tools."),
  spec: key(map, "Earlier form: read as `spec` in templates."),
  workflow: required(v.pipe(v.array(StepBody), v.minLength(1)), "The steps."),
});
