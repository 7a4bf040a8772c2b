import { isLabelValue, LABEL_VALUE_RULE, labelsProblem } from "../../schema/rules/execution-labels.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import type { EngineEnv } from "../env.ts";
import { quoted } from "../errors.ts";
import type { Program } from "../program/program.ts";
import { render } from "./scope.ts";

/**
 * Labels of an execution: those of `executor.spec.labels`, rendered over its workload, and over them those `given` with its start.
 * One whose value is empty or null is left out. Sealed values stay sealed, because everyone may see labels. Throws `FlowError`
 * INVALID_INPUT for a value that no label has and for too many labels, so that the execution cannot begin; `ReferenceNeeded` as
 * decisions do.
 */
export function startLabels(
  program: Program,
  workload: JsonObject,
  given: Readonly<Record<string, string>>,
  env: EngineEnv,
): Record<string, string> {
  const labels: Record<string, string> = {};
  const scope = {
    lookup: (name: string) => (name === "workload" ? workload : own(workload, name)) as Json | undefined,
    names: () => Object.keys(workload),
  };
  for (const [name, template] of program.labels) {
    if (Object.hasOwn(given, name)) continue;
    const value = render(template, scope, env);
    const isText = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    if (value === null || value === "") continue;
    if (!isText || !isLabelValue(String(value))) {
      const message = `The label '${name}' of '${program.playbook.path}' is ${quoted(value, env)}: it must be ${LABEL_VALUE_RULE}`;
      throw new FlowError("INVALID_INPUT", message);
    }
    setOwn(labels, name, String(value));
  }
  for (const [name, value] of Object.entries(given)) setOwn(labels, name, value);
  const problem = labelsProblem(labels);
  if (problem !== undefined)
    throw new FlowError("INVALID_INPUT", `'${program.playbook.path}' was not started: it ${problem}`);
  return labels;
}
