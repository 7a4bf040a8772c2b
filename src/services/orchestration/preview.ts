import { type StartRequest, startExecution } from "../../engine/decide/start.ts";
import type { InputProblem } from "../../engine/program/check-inputs.ts";
import { openAccount } from "../../language/expression/parsing/budget.ts";
import { loadedReferences } from "../../language/template/loaded-references.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { decisionsOf } from "./memory/load-execution.ts";
import type { Orchestrator } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";

/** In the place of the ids that only a start gives. */
const NO_ID = "0";

/** Creates {@link Orchestrator.preview}: the engine's own start, of which nothing is kept. */
export function createPreview(parts: OrchestratorParts): Orchestrator["preview"] {
  return async (program, input) => {
    const decisions = decisionsOf(parts, NO_ID, () => ({}), new Map());
    const references = loadedReferences(decisions.store);
    const { sealing } = decisions;
    const { inputs } = program.playbook;
    const request = { executionId: NO_ID, catalogId: NO_ID, input: await decisions.input(input, inputs) };
    const base = { now: parts.now(), newId: () => NO_ID, references, env: parts.env, sealing };
    const begin = (more: Pick<StartRequest, "findProblems">) =>
      references.evaluate(() => startExecution({ ...request, ...more }, program, { ...base, account: openAccount() }));
    // Unchecked at first: what is wrong with the inputs does not hide what they come to.
    const { workload } = await begin({});
    if (inputs === undefined) return { workload, problems: [] };
    const { problemsWithData: findProblems } = await import("../../platform/json-schema.ts");
    const refused = await begin({ findProblems }).then(() => undefined, problemsIn);
    return { workload, problems: refused ?? [] };
  };
}

/** What a refused start says of its inputs. Throws any other error. */
function problemsIn(error: unknown): InputProblem[] {
  const detail = error instanceof FlowError && error.code === "INVALID_INPUT" ? error.detail : undefined;
  const errors = isJsonObject(detail) ? own(detail, "errors") : undefined;
  if (!Array.isArray(errors)) throw error;
  return errors as unknown as InputProblem[];
}
