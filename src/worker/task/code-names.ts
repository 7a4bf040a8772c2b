import { codeNeeds } from "../../engine/program/code-needs.ts";
import type { LoadedReferences } from "../../language/template/loaded-references.ts";
import { ResultView } from "../../language/views/result-view.ts";
import type { Scope } from "../../language/views/scope.ts";
import { type JsonObject, setOwn } from "../../schema/words/json.ts";
import type { Task } from "../../schema/words/playbook.ts";
import { plainValue } from "./to-plain-json.ts";

/**
 * Every name that code may read beside its inputs, as plain values: `context` of Python. Empty for tasks whose code cannot
 * read them, so that they pay nothing.
 */
export async function codeNames(references: LoadedReferences, task: Task, scope: Scope): Promise<JsonObject> {
  if (task.kind !== "python" || codeNeeds(task).names.size === 0) return {};
  return await references.evaluate(() => {
    const names: Record<string, unknown> = {};
    for (const name of scope.names()) {
      // Secrets reach code only through inputs that name them.
      const value = name === "keychain" ? undefined : scope.lookup(name);
      if (value !== undefined) setOwn(names, name, value instanceof ResultView ? value.forCode() : value);
    }
    return plainValue(names) as JsonObject;
  });
}
