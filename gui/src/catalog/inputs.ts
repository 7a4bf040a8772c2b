/** A field of the form: a key of `workload`, with the type that its default has. */
export interface InputField {
  name: string;
  kind: "text" | "number" | "boolean" | "json";
  initial: unknown;
}

/** The inputs that a document declares by its workload's defaults. */
export function fieldsOf(payload: Readonly<Record<string, unknown>>): InputField[] {
  const workload = payload["workload"];
  if (typeof workload !== "object" || workload === null || Array.isArray(workload)) return [];
  return Object.entries(workload).map(([name, initial]) => ({ name, kind: kindOf(initial), initial }));
}

function kindOf(value: unknown): InputField["kind"] {
  if (typeof value === "number") return "number";
  if (typeof value === "boolean") return "boolean";
  return typeof value === "string" ? "text" : "json";
}

/** What stands in a field for a value. */
export function textOf(kind: InputField["kind"], value: unknown): string {
  if (kind === "json") return JSON.stringify(value, null, 2) ?? "";
  return value === null || value === undefined ? "" : String(value);
}

/** The value of a field's text. Throws an `Error` that says what is wrong with it. */
export function parsedInput({ kind, name }: InputField, text: string): unknown {
  if (kind === "text") return text;
  if (kind === "boolean") return text === "true";
  if (kind === "number") {
    const value = Number(text);
    // A template may stand where a number is: it is text then.
    if (text.includes("{{")) return text;
    if (text.trim() === "" || !Number.isFinite(value)) throw new Error(`${name} must be a number`);
    return value;
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} must be JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const KEY = "flow.inputs.";
/** Longest set of inputs that is remembered, characters. */
const KEPT_MAX = 20_000;

/** The inputs of the last run of a path from this browser. */
export function lastInputs(path: string): Record<string, unknown> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY + path) ?? "{}");
    return typeof kept === "object" && kept !== null ? (kept as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Remembers the inputs of a run. What is too long is not remembered. */
export function keepInputs(path: string, inputs: Readonly<Record<string, unknown>>): void {
  const text = JSON.stringify(inputs);
  if (text.length > KEPT_MAX) return;
  try {
    localStorage.setItem(KEY + path, text);
  } catch {
    // The browser's store is full: the form begins with the defaults next time.
  }
}
