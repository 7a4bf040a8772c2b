import { stringify } from "yaml";
import type { Json, JsonObject } from "../../src/schema/words/json.ts";

/*
 * Every way to write a step's `tool` (language document, section 3), its result inline and stored, on a plain step and in a
 * loop: the documents are made of the forms, and what they must come to of two sentences of section 8. A lone task yields its
 * own result unchanged. The result of several has the fields of all of them in order, later wins; each is read by its label.
 */

/** A way to write `tool`. `task` is the body of the task under test, of which the sizes and places are varied. */
interface ToolForm {
  name: string;
  /** What stands on the step. */
  step(task: JsonObject): JsonObject;
  /** Label of the task under test: in scope of the step's own `set`. */
  label(step: string): string;
  /** Labels of all tasks where there are several; the first one is under test. */
  labels?: readonly string[];
}

/** A second task, which overwrites one field and adds another. */
const LOOK: JsonObject = { kind: "noop", result: { status: "looked", seen: 2 } };

const own = (step: string) => step;

/** All of them. */
export const TOOL_FORMS: readonly ToolForm[] = [
  { name: "map", step: (task) => ({ tool: task }), label: own },
  { name: "named_map", step: (task) => ({ tool: { name: "make", ...task } }), label: () => "make" },
  { name: "list_name", step: (task) => ({ tool: [{ name: "make", ...task }] }), label: () => "make" },
  { name: "list_label", step: (task) => ({ tool: [{ make: task }] }), label: () => "make" },
  { name: "list_bare", step: (task) => ({ tool: [task] }), label: () => "task_0" },
  { name: "label_map", step: (task) => ({ tool: { make: task } }), label: () => "make" },
  { name: "flat", step: ({ kind, ...keys }) => ({ tool: kind ?? null, ...keys }), label: own },
  {
    name: "workbook",
    step: ({ spec }) => ({ tool: { kind: "workbook", name: "query", spec: spec ?? {} } }),
    label: own,
  },
  {
    name: "list_workbook",
    step: ({ spec }) => ({ tool: [{ make: { kind: "workbook", name: "query", spec: spec ?? {} } }] }),
    label: () => "make",
  },
  {
    name: "two_names",
    step: (task) => ({
      tool: [
        { name: "make", ...task },
        { name: "look", ...LOOK },
      ],
    }),
    label: () => "make",
    labels: ["make", "look"],
  },
  {
    name: "two_labels",
    step: (task) => ({ tool: [{ make: task }, { look: LOOK }] }),
    label: () => "make",
    labels: ["make", "look"],
  },
  {
    name: "two_in_a_map",
    step: (task) => ({ tool: { make: task, look: LOOK } }),
    label: () => "make",
    labels: ["make", "look"],
  },
  {
    name: "two_bare",
    step: (task) => ({ tool: [task, LOOK] }),
    label: () => "task_0",
    labels: ["task_0", "task_1"],
  },
];

/** What the task under test gives: it has virtual fields (`command_0`), rows, and a field of which one is selected. */
const QUERY: JsonObject = {
  kind: "sqldb",
  auth: "parity_db",
  command: "select 1 as one; select 7 as n, repeat('x', 80) as text",
};
const ROW: JsonObject = { n: 7, text: "x".repeat(80) };
const OWN: JsonObject = {
  status: "success",
  rows: [ROW],
  row_count: 1,
  columns: ["n", "text"],
  statement_count: 2,
};
const FIRST: JsonObject = { status: "success", rows: [{ one: 1 }], row_count: 1, columns: ["one"] };
/** Below the size of {@link OWN}, above that of what {@link LOOK} gives. */
const INLINE_MAX_BYTES = 64;

/** One step of the document, and what the last step must find of it. */
interface FormCase {
  step: JsonObject;
  name: string;
  probe: JsonObject;
  expected: JsonObject;
  /** The kind of reference that people are shown, or the value itself. */
  shown: Json;
}

function formCase(form: ToolForm, isStored: boolean, inLoop: boolean): FormCase {
  const name = [form.name, isStored ? "stored" : "inline", inLoop ? "loop" : "plain"].join("_");
  const result = {
    ...(isStored && { inline_max_bytes: INLINE_MAX_BYTES }),
    select: [{ path: "$.rows[0].n", as: "chosen" }],
  };
  const label = form.label(name);
  const step = {
    step: name,
    ...(inLoop && { loop: { in: [1], iterator: "one" } }),
    ...form.step({ ...QUERY, spec: { result } }),
    ...(!inLoop && { set: { [`${name}_count`]: `{{ ${label}.row_count }}` } }),
  };
  const at = inLoop ? `${name}.results[0]` : name;
  const isList = form.labels !== undefined;
  const made = isList ? `${at}.${label}` : at;
  const probe: JsonObject = {
    whole: `{{ ${at} }}`,
    rows: `{{ ${at}.rows }}`,
    status: `{{ ${at}.status }}`,
    chosen: `{{ ${at}.chosen }}`,
    first: `{{ ${made}.command_0 }}`,
    has_ref: `{{ ${made}._ref is defined }}`,
    has_store: `{{ ${made}._store is defined }}`,
    has_preview: `{{ ${made}._preview is defined }}`,
    extracted: `{{ ${made}._ref.extracted }}`,
    joined: `{{ ${at}._ref is defined }}`,
    labels: `{{ ${at}.results is defined }}`,
    of_label: `{{ ${at}.${label}.row_count }}`,
    ...(!inLoop && { set: `{{ ${name}_count }}` }),
  };
  const { rows, ...scalars } = OWN;
  const { columns: _columns, ...extracted } = scalars;
  const whole = isList ? { ...OWN, status: "looked", seen: 2 } : OWN;
  const expected: JsonObject = {
    whole,
    rows: rows ?? null,
    status: whole["status"] as Json,
    chosen: 7,
    first: FIRST,
    has_ref: isStored,
    has_store: isStored,
    has_preview: isStored,
    extracted: isStored ? { ...extracted, chosen: 7 } : null,
    joined: isStored,
    labels: isList,
    of_label: isList ? 1 : null,
    ...(!inLoop && { set: 1 }),
  };
  const elsewhere = { ...whole, rows: fieldAt("rows"), columns: fieldAt("columns") };
  const shown = inLoop ? null : !isStored ? whole : isList ? elsewhere : { kind: "result_ref" };
  return { name, step, probe, expected, shown };
}

/** What stands for a field of a stored result. */
function fieldAt(field: string): JsonObject {
  return { kind: "result_ref", field };
}

/** A playbook, what its result must be, and the steps of which both runtimes must show the same. */
export interface FormsDocument {
  path: string;
  content: string;
  expected: Json;
  /** By step: fields of what is shown of it; null where nothing is expected. */
  shown: Record<string, Json>;
}

/** One playbook with every form in every size and place. */
export function formsDocument(): FormsDocument {
  const cases = TOOL_FORMS.flatMap((form) =>
    [false, true].flatMap((isStored) => [false, true].map((inLoop) => formCase(form, isStored, inLoop))),
  );
  return documentOf("tool_forms", cases);
}

/** Bytes of a result of one text field beside the text itself. */
const FRAME_BYTES = JSON.stringify({ text: "" }).length;
/** The largest result that is inline where nothing is said of it. */
const LIMIT_BYTES = 65_536;

/** A list of one task and one of two, around the default limit of inline results. */
export function limitDocument(): FormsDocument {
  const cases = [-1, 0, 1].flatMap((beyond) => [limitCase(beyond, false), limitCase(beyond, true)]);
  return documentOf("inline_limit", [...cases, readingCase()]);
}

/** The reference of a list leads to what its tasks came to. */
function readingCase(): FormCase {
  const list = `two_${LIMIT_BYTES + 1}`;
  return {
    name: "read",
    step: { step: "read", tool: { kind: "artifact", ref: `{{ ${list}._ref }}` } },
    probe: { fields: "{{ read | list }}", seen: "{{ read.seen }}" },
    expected: { fields: ["text", "status", "seen"], seen: 2 },
    shown: { kind: "result_ref" },
  };
}

function limitCase(beyond: number, isList: boolean): FormCase {
  const length = LIMIT_BYTES + beyond - FRAME_BYTES;
  const name = `${isList ? "two" : "one"}_${LIMIT_BYTES + beyond}`;
  const make = { kind: "python", code: `result = {"text": "x" * ${length}}` };
  const step = { step: name, tool: isList ? [{ make }, { look: LOOK }] : [{ make }] };
  const made = isList ? `${name}.make` : name;
  return {
    name,
    step,
    probe: {
      fields: `{{ ${name} | list }}`,
      length: `{{ ${name}.text | length }}`,
      made: `{{ ${made}.text | length }}`,
      seen: `{{ ${name}.seen }}`,
      labels: `{{ (${name}.results | default({})) | list }}`,
      stored: `{{ ${made}._ref is defined }}`,
      joined: `{{ ${name}._ref is defined }}`,
    },
    expected: {
      fields: isList ? ["text", "status", "seen"] : ["text"],
      length,
      made: length,
      seen: isList ? 2 : null,
      labels: isList ? ["make", "look"] : [],
      stored: beyond > 0,
      joined: beyond > 0,
    },
    shown: isList
      ? { text: beyond > 0 ? fieldAt("text") : "x".repeat(length), status: "looked", seen: 2 }
      : beyond > 0
        ? { kind: "result_ref" }
        : { text: "x".repeat(length) },
  };
}

function documentOf(name: string, cases: readonly FormCase[]): FormsDocument {
  const path = `parity/generated/${name}`;
  const steps = cases.map(({ step }, index) => ({ ...step, next: cases[index + 1]?.name ?? "end" }));
  const by = (pick: (one: FormCase) => JsonObject) => Object.fromEntries(cases.map((one) => [one.name, pick(one)]));
  const end = { step: "end", tool: { kind: "noop", result: by(({ probe }) => probe) } };
  const content = stringify(
    {
      apiVersion: "flow/v2",
      kind: "Playbook",
      metadata: { name, path },
      workbook: [{ name: "query", tool: QUERY }],
      executor: { spec: { entry_step: cases[0]?.name ?? "end" } },
      workflow: [...steps, end],
    },
    { lineWidth: 0 },
  );
  const shown = Object.fromEntries(cases.map((one) => [one.name, one.shown]));
  return { path, content, expected: by(({ expected }) => expected), shown };
}
