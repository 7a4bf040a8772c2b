import { StepBody, StepPolicy, StepSpec } from "../../schema/documents/document.ts";
import { TaskPolicy } from "../../schema/documents/document-task.ts";
import type { Step } from "../../schema/words/playbook.ts";
import { mergeAssignments, readAssignments, readInputs } from "./assignments.ts";
import { readDuration, SECOND_MS } from "./durations.ts";
import { readLoop } from "./loop.ts";
import { readNext } from "./next.ts";
import { readResult } from "./result-storage.ts";
import { readAdmission } from "./rules.ts";
import { field, isMap, type Place, textOf } from "./source/place.ts";
import { checkKey, noteCondition, positionOf, REMOVED_STEP_KEYS, type Reading } from "./source/reading.ts";
import { readTool, type Tool } from "./tool.ts";
import { checkWaitPlace } from "./wait.ts";

/** Reads one step (language document, section 2). */
export function readStep(outer: Reading, place: Place): Step {
  const name = textOf(field(place, "step")) ?? "";
  const tool = readTool(outer, place, name);
  // A step's own inputs, assignments and arcs may name its tasks (language document, section 5.7).
  const reading: Reading = { ...outer, labels: new Set(tool.tasks.map((task) => task.label)) };
  checkStepKeys(reading, place, tool);
  const spec = field(place, "spec");
  const desc = textOf(field(place, "desc"));
  const when = place.fields.get("when");
  noteCondition(reading, when);
  const loop = readLoop(reading, field(place, "loop"));
  if (tool.tasks.some(({ kind }) => kind === "wait")) checkWaitPlace(reading, place, tool.tasks, loop);
  const timeoutMs = readDuration(reading, field(spec, "timeout"), SECOND_MS);
  const labels = readLabels(field(spec, "labels"));
  const vars = readAssignments(reading, field(place, "vars"), "ctx");
  const set = readAssignments(reading, field(place, "set"), "ctx");
  const storages = [field(spec, "result"), field(spec, "output"), field(place, "output")];
  return {
    name,
    ...(desc === undefined ? {} : { desc }),
    tasks: tool.tasks,
    pipeline: tool.tasks.length > 1,
    input: readInputs(reading, field(place, "args"), field(place, "input")),
    ...(when === undefined ? {} : { when: when.value }),
    admit: readAdmission(reading, field(field(spec, "policy"), "admit")),
    ...(loop === undefined ? {} : { loop }),
    set: mergeAssignments(vars, set),
    result: readResult(reading, storages, field(place, "output_select")),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(labels === undefined ? {} : { labels }),
    next: readNext(reading, field(place, "next")),
    position: positionOf(reading, place),
  };
}

/** Labels are compared as texts: `gpu: 1` and `gpu: "1"` are the same. */
function readLabels(place: Place | undefined): Record<string, string> | undefined {
  if (!isMap(place) || place.fields.size === 0) return undefined;
  return Object.fromEntries([...place.fields].map(([key, { value }]) => [key, String(value)]));
}

/** Keys of the step itself, of its `spec` and of `spec.policy`. A flat step's other keys are its task's. */
function checkStepKeys(reading: Reading, place: Place, tool: Tool): void {
  const known = Object.keys(StepBody.entries);
  for (const [key, entry] of place.fields) {
    const isTaskKey = tool.flat && !Object.hasOwn(REMOVED_STEP_KEYS, key);
    if (!isTaskKey) checkKey(reading, key, entry, known, REMOVED_STEP_KEYS);
  }
  const spec = field(place, "spec");
  const hoisted = tool.flat ? [...(spec?.fields.keys() ?? [])] : [];
  for (const [key, entry] of spec?.fields ?? []) {
    checkKey(reading, key, entry, [...Object.keys(StepSpec.entries), ...hoisted]);
  }
  const policyKeys = [...Object.keys(StepPolicy.entries), ...(tool.flat ? Object.keys(TaskPolicy.entries) : [])];
  for (const [key, entry] of field(spec, "policy")?.fields ?? []) checkKey(reading, key, entry, policyKeys);
}
