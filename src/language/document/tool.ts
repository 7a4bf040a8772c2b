import { StepBody } from "../../schema/documents/document.ts";
import { isLabelled } from "../../schema/documents/document-task.ts";
import type { Task } from "../../schema/words/playbook.ts";
import { defaultResult } from "./result-storage.ts";
import { field, isMap, type Place, textOf } from "./source/place.ts";
import { legacy, positionOf, REMOVED_STEP_KEYS, type Reading } from "./source/reading.ts";
import { hoistSpec, readTask, type TaskDraft } from "./task.ts";

/** The tasks of a step or a workbook entry. */
export interface Tool {
  tasks: Task[];
  /** True when `tool` is a text and the task's keys stand beside it. */
  flat: boolean;
}

/**
 * Reads `tool` in all its forms (language document, section 3). `owner` is the step or workbook entry, `name` its name.
 */
export function readTool(reading: Reading, owner: Place, name: string): Tool {
  const { drafts, flat } = draftTool(reading, owner, name);
  const labels = drafts.map((draft) => draft.label);
  const seen = new Set<string>();
  for (const { label, place, at } of drafts) {
    if (seen.has(label)) {
      const hint = "labels are unique within a step";
      reading.report("duplicate-label", place, `two tasks are labelled \`${label}\``, hint, at);
    }
    seen.add(label);
  }
  const inStep: Reading = { ...reading, labels: seen };
  const tasks = drafts.map((draft, index) => readTask(inStep, draft, labels, index));
  return { tasks: tasks.length > 0 ? tasks : [implicitNoop(reading, owner, name)], flat };
}

/** The task of a step that has no tool. */
function implicitNoop(reading: Reading, owner: Place, name: string): Task {
  const position = positionOf(reading, owner);
  return { label: name, kind: "noop", config: {}, input: {}, policy: [], set: [], result: defaultResult(), position };
}

interface Drafts {
  drafts: TaskDraft[];
  flat: boolean;
}

function draftTool(reading: Reading, owner: Place, name: string): Drafts {
  const tool = field(owner, "tool");
  if (tool === undefined || (Array.isArray(tool.value) && tool.items.length === 0)) {
    const hint = "add `tool: {kind: …}`, or `tool: {kind: noop}` to say that it is meant";
    reading.report("missing-tool", owner, `step \`${name}\` has no tool and does nothing`, hint);
    return { drafts: [], flat: false };
  }
  if (textOf(tool) !== undefined) {
    legacy(reading, tool, "`tool` as a text with its keys beside it", "`tool: {kind: …, …}`");
    return { drafts: [flatDraft(owner, tool, name)], flat: true };
  }
  if (Array.isArray(tool.value)) {
    return { drafts: tool.items.flatMap((item, index) => draftEntry(item, `task_${index}`)), flat: false };
  }
  if (isLabelled(tool.value)) return { drafts: draftEntry(tool, name), flat: false };
  const named = textOf(field(tool, "kind")) === "workbook" ? undefined : textOf(field(tool, "name"));
  return { drafts: isMap(tool) ? [draft(tool, named ?? name, tool.valueStart)] : [], flat: false };
}

/** A list's entry: one task, or one task per label. */
function draftEntry(entry: Place, defaultLabel: string): TaskDraft[] {
  if (isLabelled(entry.value)) {
    return [...entry.fields].filter(([, body]) => isMap(body)).map(([label, body]) => draft(body, label, body.start));
  }
  return isMap(entry) ? [draft(entry, textOf(field(entry, "name")) ?? defaultLabel, entry.valueStart)] : [];
}

function draft(place: Place, label: string, at: number): TaskDraft {
  const ownSpec = place.fields.get("spec");
  const fields = hoistSpec(place.fields, ownSpec);
  return { label, place, at, fields, assembled: fields.size > place.fields.size, ownSpec };
}

const STEP_KEYS: readonly string[] = Object.keys(StepBody.entries);

/**
 * `tool: python` with `code`, `auth`, … on the step. What every step has stays the step's; of its `spec` the task gets
 * the rules for its outcome and the keys that stand for task keys.
 */
function flatDraft(owner: Place, tool: Place, label: string): TaskDraft {
  const fields = new Map<string, Place>([["kind", tool]]);
  for (const [key, value] of owner.fields) {
    // `name` is the owner's, but for kind workbook it is the name of the tool to run.
    const named = key === "name" && textOf(tool) !== "workbook";
    const taken = STEP_KEYS.includes(key) || key === "kind" || Object.hasOwn(REMOVED_STEP_KEYS, key);
    if (!taken && !named) fields.set(key, value);
  }
  const spec = owner.fields.get("spec");
  const hoistable = new Map([...(spec?.fields ?? [])].filter(([key]) => key !== "output" && key !== "labels"));
  return {
    label,
    place: owner,
    at: owner.valueStart,
    fields: hoistSpec(fields, spec && { ...spec, fields: hoistable }),
    assembled: true,
    stepSpec: spec,
  };
}
