import type { Needs } from "../../language/template/needs.ts";
import type { Task } from "../../schema/words/playbook.ts";

const NOTHING: Needs = { names: new Set(), members: new Map() };

/** Everything: each root is used as a whole. */
const EVERYTHING: Needs = {
  names: new Set(["workload", "ctx", "vars", "steps", "iter"]),
  members: new Map([
    ["workload", "all"],
    ["ctx", "all"],
    ["vars", "all"],
    ["steps", "all"],
    ["iter", "all"],
  ]),
};

/** The token of a caller, for a server that is otherwise called with the machine's identity. */
const CALLERS_TOKEN: Needs = {
  names: new Set(["workload"]),
  members: new Map([["workload", new Set(["access_token"])]]),
};

/**
 * What a task reads beyond its templates: for Python code see {@link codeNeeds}; a task of kind `mcp` reads
 * `workload.access_token`.
 */
export function hiddenNeeds(task: Task): Needs {
  return task.kind === "mcp" ? CALLERS_TOKEN : codeNeeds(task);
}

/**
 * What Python code may read beyond its inputs. `context` and `**kw` give it every name; parameters of `main` are bound by name,
 * so any word of the code may be an input. Code outside the document may read anything.
 */
export function codeNeeds(task: Task): Needs {
  if (task.kind !== "python") return NOTHING;
  const code = task.config["code"];
  if (typeof code !== "string" || /\bcontext\b|\*\*\s*\w/.test(code)) return EVERYTHING;
  if (!/\bdef\s+main\b/.test(code)) return NOTHING;
  return { names: new Set(code.match(/[A-Za-z_]\w*/g) ?? []), members: new Map() };
}
