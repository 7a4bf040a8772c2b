import {
  ExecutorBody,
  ExecutorRequires,
  ExecutorSpec,
  Metadata,
  PlaybookDocument,
  WorkbookEntry,
} from "../../schema/documents/document.ts";
import {
  isLabelName,
  isLabelValue,
  LABEL_NAME_RULE,
  LABEL_VALUE_RULE,
  LABELS_MAX,
} from "../../schema/rules/execution-labels.ts";
import { isJsonObject, type JsonObject, setOwn } from "../../schema/words/json.ts";
import type { Executor, Playbook, Step, Task } from "../../schema/words/playbook.ts";
import { readInputs } from "./assignments.ts";
import { readPath } from "./catalog-path.ts";
import { readDuration, SECOND_MS } from "./durations.ts";
import { readInputs as readDeclaredInputs } from "./inputs/read-inputs.ts";
import { checkUnique, readKeychain } from "./keychain.ts";
import { field, isMap, type Place, textOf } from "./source/place.ts";
import { checkKeys, noteTemplate, noteText, type Reading } from "./source/reading.ts";
import { readStep } from "./step.ts";
import { readTool } from "./tool.ts";
import { readTriggers } from "./triggers/read-triggers.ts";

/** Most steps of a playbook. Every step costs a record in each run's state. */
export const STEPS_MAX = 10_000;

/**
 * The document as a playbook, every spelling normalised (language document, sections 1 to 7). Values of a wrong type,
 * reported elsewhere, are left out: the playbook is usable only when no error was reported.
 */
export function readPlaybook(reading: Reading, root: Place): Playbook {
  checkKeys(reading, root, PlaybookDocument);
  checkApiVersion(reading, field(root, "apiVersion"));
  const metadata = field(root, "metadata");
  checkKeys(reading, metadata, Metadata);
  const name = readName(reading, metadata);
  const [declaring, defaults] = [field(root, "inputs"), field(root, "workload")];
  noteText(reading, defaults);
  const read = isMap(declaring) ? readDeclaredInputs(reading, declaring, defaults) : { workload: mapOf(defaults) };
  const steps = readSteps(reading, field(root, "workflow"));
  const executor = field(root, "executor");
  const entry = field(field(executor, "spec"), "entry_step");
  const entryStep = textOf(entry) ?? (steps.find((step) => step.name === "start") ?? steps[0])?.name ?? "";
  if (entry !== undefined) reading.targets.push({ place: entry, name: entryStep });
  const triggers = field(root, "triggers");
  if (triggers !== undefined) reading.triggers.push(...readTriggers(reading, triggers));
  return {
    apiVersion: textOf(field(root, "apiVersion")) ?? "",
    kind: textOf(field(root, "kind")) ?? "",
    name,
    path: readPath(reading, metadata) ?? name,
    metadata: mapOf(metadata),
    workload: read.workload,
    spec: mapOf(field(root, "spec")),
    executor: readExecutor(reading, executor),
    keychain: readKeychain(reading, field(root, "keychain")),
    workbook: readWorkbook(reading, field(root, "workbook")),
    entryStep,
    steps,
    ...(triggers === undefined ? {} : { hasTriggers: true }),
    ...("inputs" in read ? { inputs: read.inputs } : {}),
  };
}

function mapOf(place: Place | undefined): JsonObject {
  return place !== undefined && isJsonObject(place.value) ? place.value : {};
}

function checkApiVersion(reading: Reading, place: Place | undefined): void {
  const written = textOf(place);
  if (written === undefined || /^[^\s/]\S*\/v2$/.test(written)) return;
  const hint = "write `<vendor>/v2`";
  reading.report("wrong-api-version", place, `apiVersion \`${written}\` is not supported`, hint);
}

function readName(reading: Reading, metadata: Place | undefined): string {
  const place = field(metadata, "name");
  const name = textOf(place) ?? "";
  if (place !== undefined && name.trim() === "" && typeof place.value === "string") {
    reading.report("missing-key", place, "`metadata.name` is empty", "give the playbook a name");
  }
  return name;
}

function readSteps(reading: Reading, workflow: Place | undefined): Step[] {
  if (workflow === undefined || !Array.isArray(workflow.value)) return [];
  if (workflow.items.length === 0)
    reading.report("empty-workflow", workflow, "the workflow has no steps", "add a step");
  if (workflow.items.length > STEPS_MAX) {
    const message = `the workflow has ${workflow.items.length} steps; at most ${STEPS_MAX} are allowed`;
    reading.report("too-many-steps", workflow, message, "loop over data instead of writing it as steps");
    return [];
  }
  const steps: Step[] = [];
  for (const place of workflow.items.filter(isMap)) {
    const step = readStep(reading, place);
    const named = field(place, "step");
    const first = reading.steps.get(step.name);
    if (named !== undefined && step.name.trim() === "" && typeof named.value === "string") {
      reading.report("missing-key", named, "the step's name is empty", "give the step a name");
    } else if (step.name === "") {
      // The name is missing or not text: reported where it was read.
    } else if (named !== undefined && first !== undefined) {
      const hint = `the other is in line ${reading.locate(first.valueStart).line}`;
      reading.report("duplicate-step", named, `two steps are called \`${step.name}\``, hint);
    } else if (named !== undefined) {
      reading.steps.set(step.name, named);
    }
    steps.push(step);
  }
  return steps;
}

function readExecutor(reading: Reading, place: Place | undefined): Executor {
  checkKeys(reading, place, ExecutorBody);
  checkKeys(reading, field(place, "requires"), ExecutorRequires);
  const spec = field(place, "spec");
  checkKeys(reading, spec, ExecutorSpec);
  const final = field(spec, "final_step");
  const finalStep = textOf(final);
  if (final !== undefined && finalStep !== undefined) reading.targets.push({ place: final, name: finalStep });
  const profile = textOf(field(place, "profile"));
  const timeoutMs = readDuration(reading, field(spec, "timeout"), SECOND_MS);
  const labels = readLabels(reading, field(spec, "labels"));
  return {
    ...(profile === undefined ? {} : { profile }),
    ...(finalStep === undefined ? {} : { finalStep }),
    noNextIsError: field(spec, "no_next_is_error")?.value === true,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(labels === undefined ? {} : { labels }),
  };
}

/** Labels of its executions: their names are known here, and values that are no templates. */
function readLabels(reading: Reading, place: Place | undefined): JsonObject | undefined {
  if (!isMap(place) || place.fields.size === 0) return undefined;
  if (place.fields.size > LABELS_MAX) {
    const message = `an execution has ${LABELS_MAX} labels at most, not ${place.fields.size}`;
    reading.report("wrong-value", place, message, "leave out what nobody looks for");
  }
  const labels: JsonObject = {};
  for (const [name, value] of place.fields) {
    const text = String(value.value);
    if (!isLabelName(name)) {
      reading.report("wrong-value", value, `\`${name}\` is no name of a label`, LABEL_NAME_RULE, value.start);
    } else if (text !== "" && !/\{[{%]/.test(text) && !isLabelValue(text)) {
      reading.report("wrong-value", value, `the value of the label \`${name}\` cannot be one`, LABEL_VALUE_RULE);
    }
    noteTemplate(reading, value);
    setOwn(labels, name, value.value);
  }
  return labels;
}

/** Named tools, each one task whose label is the tool's name. */
function readWorkbook(reading: Reading, place: Place | undefined): Task[] {
  const tasks: Task[] = [];
  const names = new Set<string>();
  for (const item of place?.items ?? []) {
    const name = textOf(field(item, "name"));
    const tool = field(item, "tool");
    if (name === undefined || tool === undefined) continue;
    checkUnique(reading, field(item, "name"), name, names);
    const read = readTool(reading, item, name);
    if (!read.flat) checkKeys(reading, item, WorkbookEntry);
    if (read.tasks.length > 1) {
      reading.report("wrong-value", tool, `workbook tool \`${name}\` has several tasks`, "a workbook tool is one task");
    }
    const task = read.tasks[0];
    if (task === undefined) continue;
    if (task.kind === "wait") {
      reading.report("wrong-wait", tool, "a wait is no workbook tool", "write it into the step that waits");
    }
    const defaults = readInputs(reading, field(item, "args"), field(item, "input"));
    tasks.push({ ...task, label: name, input: { ...defaults, ...task.input } });
  }
  return tasks;
}
