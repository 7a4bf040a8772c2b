import { type Names, nameScope } from "../../language/template/names.ts";
import { type Outcome, type OutputPlace, OutputView } from "../../language/views/output-view.ts";
import type { References } from "../../language/views/references.ts";
import { ResultView } from "../../language/views/result-view.ts";
import type { Scope } from "../../language/views/scope.ts";
import type { Command } from "../../schema/words/command.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";
import type { StoredResult } from "../../schema/words/result.ts";

/** The state of a pipeline that its tasks' templates read: the results and the writes of its tasks so far. */
export interface PipelineNames {
  /** Results by label, in order of completion. */
  tasks: Map<string, StoredResult>;
  /** Written by task `set`, for the later tasks of this pipeline. */
  locals: JsonObject;
  /** Execution variables that this command wrote and that are not in its context. */
  pending: JsonObject;
  /** Outcome of the task before, for `output`. */
  previous: Outcome | null;
  /** Last successful result, for `_prev`. */
  lastGood: StoredResult | null;
  iteration: Names["iteration"] | undefined;
  /** `iter` outside a loop: values written by `iter.x` assignments, until the step ends, and the caller's `parent`. */
  stepScope: JsonObject;
}

/** The context of a pipeline, the same for all its tasks. */
export interface PipelinePlace {
  command: Command;
  spec: JsonObject;
  references: References;
  env: JsonObject;
  /** `keychain` of templates. */
  keychain: unknown;
}

/** The data specific to one template: the input that it sees, the run, and which outcome is `output`. */
export interface TemplatePlace {
  input: () => JsonObject;
  attempt: number;
  output?: { outcome: Outcome; place: OutputPlace };
  extra?: Readonly<Record<string, unknown>>;
}

/** The scope of one template of a task (language document, section 4.9). */
export function taskScope(place: PipelinePlace, state: PipelineNames, at: TemplatePlace): Scope {
  return nameScope(taskNames(place, state, at));
}

function taskNames(place: PipelinePlace, state: PipelineNames, at: TemplatePlace): Names {
  const { command, references } = place;
  const { context } = command;
  return {
    executionId: command.execution_id,
    catalogId: command.catalog_id,
    ...(context.parent_execution_id !== undefined && { parentExecutionId: context.parent_execution_id }),
    workload: context.workload,
    vars: context.vars,
    pending: state.pending,
    spec: place.spec,
    steps: {
      get: (name) => own(context.steps, name) as StoredResult | undefined,
      names: () => Object.keys(context.steps),
    },
    references,
    input: at.input,
    ...(state.iteration !== undefined && { iteration: state.iteration }),
    tasks: state.tasks,
    locals: state.locals,
    ...(context.from !== undefined && { from: context.from }),
    env: place.env,
    reserved: reserved(place, state, at),
  };
}

function reserved(place: PipelinePlace, state: PipelineNames, at: TemplatePlace): Record<string, unknown> {
  const { references } = place;
  const output = at.output ?? (state.previous === null ? undefined : { outcome: state.previous, place: "envelope" });
  return {
    keychain: place.keychain,
    // Evaluated at each look-up: of several assignments, a later one sees the values of earlier ones.
    get iter() {
      return state.iteration === undefined && Object.keys(state.stepScope).length > 0 ? state.stepScope : undefined;
    },
    _attempt: at.attempt,
    _prev: state.lastGood === null ? undefined : new ResultView(state.lastGood, references),
    ...(output !== undefined && { output: new OutputView(output.outcome, output.place as OutputPlace, references) }),
    ...(at.output?.place === "raw" && resultNames(at.output.outcome, references)),
    ...at.extra,
  };
}

/** In a task's `set`, `result` and `response` are the raw result of this task. */
function resultNames(outcome: Outcome, references: References): Record<string, unknown> {
  const result = new ResultView(outcome.result, references);
  return { result, response: result };
}
