import { type Json, type JsonObject, own, setOwn } from "../../../../src/schema/words/json.ts";
import { isSame } from "../../parts/json/diff.ts";
import { readMap } from "../../parts/read-yaml.ts";

/** Where a rerun begins: with what failed, with the first step, or with one that was chosen. */
export type RerunBegin = "failed" | "start" | "step";

/** What stands in the form of a rerun. */
export interface RerunForm {
  begin: RerunBegin;
  /** The chosen step; "" for none. */
  step: string;
  /** Nothing after the chosen step runs. */
  isOnly: boolean;
  /** Inputs, as YAML or JSON. */
  input: string;
  /** Variables to set, as YAML or JSON. */
  variables: string;
  version: "same" | "latest";
  /** Iterations of a failed loop that succeeded run again too. */
  isWhole: boolean;
  reason: string;
}

/** The body of `POST /api/executions/{id}/rerun`, as the page sends it. */
export interface RerunBody {
  from: string[] | "failed" | "start";
  only?: boolean;
  input?: Record<string, never>;
  variables?: Record<string, never>;
  version?: "latest";
  reuse_iterations?: false;
  reason?: string;
}

/** What a form comes to: a request, or what is wrong with it. */
export type ReadRerun = { body: RerunBody } | { problem: string };

/** Reads the form. Of the inputs those that were changed are sent: what the server hides stays as it was. */
export async function readRerun(form: RerunForm, workload: JsonObject): Promise<ReadRerun> {
  if (form.begin === "step" && form.step === "") return { problem: "Choose the step to begin with." };
  try {
    const input = changed(workload, await named("Inputs", form.input));
    const variables = await named("Variables", form.variables);
    return {
      body: {
        from: form.begin === "step" ? [form.step] : form.begin,
        ...(form.begin === "step" && form.isOnly && { only: true }),
        ...(Object.keys(input).length > 0 && { input: input as Record<string, never> }),
        ...(Object.keys(variables).length > 0 && { variables: variables as Record<string, never> }),
        ...(form.version === "latest" && { version: "latest" }),
        ...(form.isWhole && { reuse_iterations: false }),
        ...(form.reason.trim() !== "" && { reason: form.reason.trim() }),
      },
    };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

async function named(what: string, text: string): Promise<JsonObject> {
  try {
    return await readMap(text);
  } catch (error) {
    throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function changed(before: JsonObject, after: JsonObject): JsonObject {
  const found: JsonObject = {};
  for (const key of Object.keys(after)) {
    const value = own(after, key) as Json;
    if (!isSame(own(before, key), value)) setOwn(found, key, value);
  }
  return found;
}
