import { loadPlaybook } from "../../src/language/load/load.ts";
import type { Diagnostic } from "../../src/schema/words/diagnostic.ts";
import type { Json } from "../../src/schema/words/json.ts";
import type { Playbook } from "../../src/schema/words/playbook.ts";

/** Three lines that every playbook needs; what follows begins in line 4. */
export const HEAD = "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: demo }\n";

/** `line:column code` of every diagnostic. */
export function summary(diagnostics: readonly Diagnostic[]): string[] {
  return diagnostics.map(({ line, column, code }) => `${line}:${column} ${code}`);
}

/** Loads a document that must be valid. */
export function loadValid(text: string): Playbook {
  const { playbook, diagnostics } = loadPlaybook(text, "test.yaml");
  if (playbook === undefined) throw new Error(`the document should be valid: ${JSON.stringify(diagnostics, null, 1)}`);
  return playbook;
}

/** The same value without any `position` and `codeLine`, and without the fields that have their default. */
export function essence(value: unknown): Json {
  if (Array.isArray(value)) return value.map(essence);
  if (typeof value !== "object" || value === null) return value as Json;
  const entries = Object.entries(value).filter(([key, field]) => {
    if (key === "position" || key === "codeLine") return false;
    return JSON.stringify(field) !== JSON.stringify(DEFAULTS[key]);
  });
  return Object.fromEntries(entries.map(([key, field]) => [key, essence(field)]));
}

/** What a task, step, loop or `next` has when its author says nothing. */
const DEFAULTS: Readonly<Record<string, Json>> = {
  config: {},
  input: {},
  policy: [],
  set: [],
  admit: [],
  pipeline: false,
  result: { select: [], sensitive: false },
  next: { mode: "exclusive", onNoMatch: "notice", arcs: [] },
};
