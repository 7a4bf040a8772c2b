import { InputEntry } from "../../../schema/documents/input-document.ts";
import { declaredInput, hasTemplate, INPUTS_MAX } from "../../../schema/inputs/declared-inputs.ts";
import { formProblem } from "../../../schema/rules/clean-json-schema.ts";
import { problemsBySchema } from "../../../schema/rules/json-schema.ts";
import { type Json, type JsonObject, setOwn } from "../../../schema/words/json.ts";
import type { DeclaredInput, DeclaredInputs } from "../../../schema/words/playbook.ts";
import { field, isMap, type Place } from "../source/place.ts";
import { checkKeys, noteText, type Reading } from "../source/reading.ts";

/**
 * Reads `inputs`, and `workload` with it: the default of an input is one of the workload, and may be a template as these are. Defaults of
 * inputs are rendered first, so that those of the workload can name them.
 */
export function readInputs(
  reading: Reading,
  inputs: Place,
  workload: Place | undefined,
): { inputs: DeclaredInputs; workload: JsonObject } {
  const written = isMap(workload) ? (workload.value as JsonObject) : {};
  if (inputs.fields.size > INPUTS_MAX) {
    const message = `\`inputs\` declares ${inputs.fields.size} inputs; at most ${INPUTS_MAX} are allowed`;
    reading.report("wrong-input", inputs, message, "take lists and maps as one input");
    return { inputs: {}, workload: written };
  }
  const declared: Record<string, DeclaredInput> = {};
  const defaults: JsonObject = {};
  for (const [name, place] of inputs.fields) {
    if (!isMap(place)) continue;
    const initial = readEntry(reading, name, place, field(workload, name));
    if (initial !== undefined) setOwn(defaults, name, initial);
    setOwn(declared, name, declaredInput(place.value as JsonObject));
  }
  return { inputs: declared, workload: { ...defaults, ...written } };
}

/** Reports what is wrong with one declaration; gives its default. */
function readEntry(reading: Reading, name: string, place: Place, inWorkload: Place | undefined): Json | undefined {
  const wrong = (at: Place, what: string, hint: string) => reading.report("wrong-input", at, what, hint);
  checkKeys(reading, place, InputEntry);
  if (!/^[\p{L}_][\p{L}\p{N}_-]*$/u.test(name)) {
    const hint = "write letters, digits, `_` and `-`, a letter first";
    reading.report("wrong-input", place, `\`${name}\` is no name of an input`, hint, place.start);
  }
  const declared = declaredInput(place.value as JsonObject);
  const problem = formProblem(declared.schema);
  if (problem !== undefined) wrong(place, `\`${name}\` ${problem}`, "write words of JSON Schema (2020-12)");
  const initial = field(place, "default");
  noteText(reading, initial);
  if (initial !== undefined && inWorkload !== undefined)
    wrong(initial, `\`${name}\` has a default in \`workload\` too`, "write it in one place");
  const isText = declared.schema["type"] === "string";
  const secret = field(place, "secret");
  if (secret !== undefined && declared.secret === true) {
    if (!isText) wrong(secret, `the secret \`${name}\` is no text`, "add `type: string`");
    const shown = initial ?? inWorkload;
    const hint = "everybody who may read the document could read it: keep it as a credential, and name that";
    if (shown !== undefined) wrong(shown, `the secret \`${name}\` has a default`, hint);
  }
  checkDefault(reading, name, declared, initial ?? inWorkload);
  return initial?.value;
}

/** Reports a default that its own schema refuses. What a template gives is seen when a run starts; formats are too. */
function checkDefault(reading: Reading, name: string, { schema }: DeclaredInput, initial: Place | undefined): void {
  if (initial === undefined || hasTemplate(initial.value)) return;
  const [problem] = problemsBySchema(schema, initial.value, "");
  if (problem !== undefined)
    reading.report("wrong-input", initial, `the default of \`${name}\`${problem}`, "no run could start with it");
}
