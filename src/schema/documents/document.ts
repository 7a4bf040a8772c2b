import * as v from "valibot";
import { isJsonObject } from "../words/json.ts";
import {
  anyMap,
  anything,
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
import { ResultStorage, tool } from "./document-task.ts";
import { InputEntry } from "./input-document.ts";
import { TriggerEntry } from "./trigger-document.ts";

/*
 * The playbook document as authors write it: the one definition of its keys, with `document-task.ts` and `task-kinds.ts`.
 * The loader takes from here which keys a map has and which types they take, and `playbooks/playbook.schema.json` is
 * generated from here.
 */

/** What an admission rule says. */
export const AdmitAction = map({ allow: required(condition, "Whether the step may run.") });

/** `{else: {then: {allow: …}}}`. */
export const WrappedAdmit = map({ then: required(AdmitAction, "Whether the step may run.") });

/** One rule of a step's `spec.policy.admit.rules`. */
export const AdmitRule = map({
  when: key(condition, WHEN),
  then: key(AdmitAction, "Decision when the condition holds."),
  else: key(
    byShape(v.union([AdmitAction, WrappedAdmit]), (value) => (hasKey(value, "then") ? WrappedAdmit : AdmitAction)),
    "Decision when no rule matched.",
  ),
});

/** `loop.spec.frame` of a cursor loop. */
export const LoopFrame = map({
  max_rows: key(numberOrTemplate, "Rows claimed at once; default 1."),
  max_seconds: key(numberOrTemplate, SECONDS),
  max_bytes: key(numberOrTemplate, "With `process: frame`: most bytes of rows in one iteration."),
  lease_seconds: key(numberOrTemplate, "`__frame_lease_seconds` in the claim; default 120."),
  heartbeat_seconds: key(numberOrTemplate, "Read and passed over: workers renew what they hold."),
  row_concurrency: key(numberOrTemplate, "Rows of one frame at once; default 1."),
  process: key(v.picklist(["row", "frame"]), "One iteration per row (default), or one per frame."),
});

const errorMode = v.picklist(["stop", "continue"]);

/** `loop.spec.on_error` with failures that are tolerated (language document, section 12). */
export const Tolerance = map({ tolerate: required(numberOrTemplate, "A count, or a share such as `5%`.") });

/** `loop.spec.policy`. */
export const LoopPolicy = map({
  exec: key(
    v.picklist(["distributed", "local"]),
    "One command per iteration, or one for all. Default: one per iteration, or for a few short ones.",
  ),
});

/** `loop.spec`. */
export const LoopSpec = map({
  mode: key(v.picklist(["sequential", "parallel", "async", "cursor"]), "Default sequential."),
  max_in_flight: key(numberOrTemplate, "Most iterations at once, default all; of a cursor most frames, default 1."),
  policy: key(LoopPolicy, "How iterations are carried out."),
  on_error: key(
    byShape(v.union([errorMode, Tolerance]), (value) => (typeof value === "string" ? errorMode : Tolerance)),
    "stop, continue, or `{tolerate: 5% | n}`.",
  ),
  frame: key(LoopFrame, "How rows are claimed."),
});

/** `loop.cursor`. */
export const LoopCursor = map({
  kind: required(text, "Kind of the database."),
  auth: key(v.union([text, anyMap]), "Credential."),
  claim: required(text, "Statement that claims and returns rows; `__frame_max_rows` is how many."),
});

/** `loop` of a step (language document, section 6). */
export const LoopBody = map({
  in: key(anything, "Collection, with templates."),
  collection: key(anything, "Earlier name of `in`."),
  cursor: key(LoopCursor, "Rows claimed from a database instead of a collection."),
  iterator: key(text, "Name of the item; default `item`."),
  element: key(text, "The same as `iterator`."),
  mode: key(v.picklist(["sequential", "parallel", "async", "cursor"]), "Earlier place of `spec.mode`."),
  spec: key(LoopSpec, "How the loop runs."),
});

/** One arc (language document, section 7). */
export const ArcBody = map({
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
export const NextBranch = map({
  when: key(condition, WHEN),
  then: key(arcs, "Next steps when the condition holds."),
  else: key(arcs, "Next steps when no condition held."),
});

/** `next.spec`. */
export const NextSpec = map({
  mode: key(v.picklist(["exclusive", "inclusive"]), "First match (default), or all."),
  on_no_match: key(v.picklist(["notice", "quiet", "error"]), "What happens when no arc matches."),
});

/** `next` in today's form. */
export const NextBody = map({
  spec: key(NextSpec, "How arcs are chosen."),
  arcs: key(v.array(ArcBody), "Arcs in order."),
});

const nextEntry = byShape(v.union([text, ArcBody, NextBranch]), (value) => {
  if (typeof value === "string") return text;
  // The removed `case` has its own message.
  if (hasKey(value, "case")) return anyMap;
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

/** `spec.policy.admit` of a step. */
export const Admit = map({ rules: key(v.array(AdmitRule), "Rules in order.") });

/** `spec.policy` of a step. */
export const StepPolicy = map({ admit: key(Admit, "Whether the step may run.") });

/** `spec` of a step. */
export const StepSpec = map({
  policy: key(StepPolicy, "Admission."),
  result: key(ResultStorage, "How the result is stored."),
  output: key(ResultStorage, "The same as `result`."),
  timeout: key(numberOrTemplate, SECONDS),
  labels: key(mapOf(v.union([text, v.number(), v.boolean()])), "Labels that a worker must have to run the step."),
});

/** One step (language document, section 2). */
export const StepBody = map({
  step: required(text, "Name, unique in the workflow."),
  desc: key(text, "Free text."),
  tool: key(tool, "What the step does: one task, or several in order."),
  input: key(anyMap, INPUT),
  args: key(anyMap, "The same as `input`."),
  when: key(condition, "Guard: the step is skipped when it does not hold."),
  loop: key(LoopBody, "Runs the step once per item."),
  set: key(assignments, "Assignments after success."),
  vars: key(assignments, "The same as `set`."),
  spec: key(StepSpec, "Admission, result storage, time-out and labels of workers."),
  output: key(ResultStorage, "The same as `spec.result`."),
  output_select: ResultStorage.entries.output_select,
  next: key(next, "What follows."),
});

/** `metadata`. */
export const Metadata = map({
  name: required(text, "Name of the playbook."),
  path: key(text, "Catalog path; default the name."),
  description: key(anything, "What the playbook is for."),
  version: key(anything, "Free."),
  tags: key(anything, "Free."),
  labels: key(anything, "Free."),
  agent: key(flag, "True for an executable agent."),
  terminal: key(anyMap, "How terminals show the agent."),
  exposes_as_mcp: key(anything, "false: the agent is no tool of the MCP server; or a map that describes the tool."),
});

/** `executor.requires`. */
export const ExecutorRequires = map({
  tools: key(v.array(text), "Kinds of task that a runtime must run."),
  features: key(v.array(text), "Features that a runtime must have."),
});

/** `executor.spec`. */
export const ExecutorSpec = map({
  entry_step: key(text, "Where a run starts; default `start`, else the first step."),
  final_step: key(text, "Runs once when nothing else is left."),
  no_next_is_error: key(flag, "Fails the run where no arc matches."),
  timeout: key(numberOrTemplate, SECONDS),
  labels: key(
    mapOf(v.union([text, v.number(), v.boolean()])),
    "Words to find its executions by, shown to everyone who may see them; templates over the workload. 32 at most.",
  ),
});

/** `executor`. */
export const ExecutorBody = map({
  profile: key(v.picklist(["local", "distributed", "auto"]), "Which runtime the playbook is for."),
  version: key(anything, "Version of the runtime."),
  requires: key(ExecutorRequires, "What the playbook needs."),
  spec: key(ExecutorSpec, "How a run behaves."),
});

/** One entry of `keychain` (language document, section 9). */
export const KeychainEntry = map({
  name: required(text, "Read as `keychain.<name>`."),
  kind: key(text, "secret_manager, oauth2, http, bearer, static, credential, google_id_token or `<type>_credential`."),
  type: key(text, "Earlier name of `kind`."),
  provider: key(text, "Secret manager: cloud_a (gcp), cloud_b (aws) or cloud_c (azure)."),
  scope: key(v.picklist(["global", "local", "shared"]), "Who may read the entry; default global."),
  auth: key(v.union([text, anyMap]), "Credential that reaches the secret manager, or whose token is wanted."),
  map: key(anyMap, "Field name to secret path: `path`, `path#field`, or {path, key, version}."),
  project: key(text, "Project of secrets of cloud_a that are named without one."),
  region: key(text, "Region of secrets of cloud_b."),
  vault: key(text, "Name or address of the vault of cloud_c."),
  scopes: key(v.union([text, v.array(text)]), "What the token of the credential is for."),
  auto_renew: key(flag, "Renew on expiry."),
  ttl_seconds: key(numberOrTemplate, "Lifetime in seconds."),
  endpoint: key(text, "Address of the token request."),
  method: key(text, "Method of the token request."),
  headers: key(anyMap, "Headers of the token request."),
  data: key(anything, "Body of the token request, or the fields of a static entry."),
  credential: key(anything, "Credential that the entry reads; alone it makes the entry one of kind credential."),
  ref: key(text, "Earlier name of `credential`."),
  service_account_credential: key(text, "google_id_token: earlier name of `auth`, the service account's credential."),
  service_account_secret: key(
    text,
    "google_id_token: path of the service account's key in the secret manager that `auth` reaches, instead of a credential.",
  ),
  target_audience: key(text, "Audience of an identity token."),
  token: key(text, "Token of a bearer entry."),
  token_field: key(text, "Field of the answer that holds the token; default access_token."),
  ttl_field: key(text, "Field of the answer that holds the lifetime; default expires_in."),
  renew_config: key(anyMap, "Request that renews the entry."),
  schema: key(anyMap, "Fields that the data must have."),
});

/** One entry of `workbook`: a named tool. */
export const WorkbookEntry = map({
  name: required(text, "Name that tasks of kind `workbook` use."),
  desc: key(text, "Free text."),
  tool: required(tool, "One task."),
  input: key(anyMap, "Default inputs."),
  args: key(anyMap, "The same as `input`."),
});

/** The document (language document, section 1). */
export const PlaybookDocument = map({
  apiVersion: required(v.pipe(text, v.regex(/^[^\s/]\S*\/v2$/)), "Vendor-prefixed version: `<vendor>/v2`."),
  kind: required(v.picklist(["Playbook", "Agent"]), "Playbook."),
  metadata: required(Metadata, "Name and path."),
  inputs: key(mapOf(InputEntry), "What inputs there are, checked when a run starts: JSON Schema by the name of each."),
  workload: key(anyMap, "Default inputs; those of the request replace top-level keys."),
  executor: key(ExecutorBody, "How a run behaves."),
  keychain: key(v.array(KeychainEntry), "Tokens and secrets by name."),
  workbook: key(v.array(WorkbookEntry), "Named tools."),
  spec: key(anyMap, "Earlier form: read as `spec` in templates."),
  workflow: required(v.pipe(v.array(StepBody), v.minLength(1)), "The steps."),
  triggers: key(v.array(TriggerEntry), "What starts it by itself."),
});
