import { ownInputs } from "../../../engine/decide/scope.ts";
import { type PipelinePlace, taskScope } from "../../../engine/decide/task-scope.ts";
import {
  calledTask,
  type Program,
  type ProgramStep,
  type ProgramTask,
  workbookName,
} from "../../../engine/program/program.ts";
import { type Knowledge, looksSecret, type Rendered, renderKnown } from "../../../language/template/render-known.ts";
import type { Template } from "../../../language/template/template.ts";
import { noReferences } from "../../../language/views/references.ts";
import type { RenderedTask } from "../../../schema/api/rendered.ts";
import type { Command } from "../../../schema/words/command.ts";
import { type Json, type JsonObject, own, setOwn } from "../../../schema/words/json.ts";
import { SECRET_MASK } from "../../../schema/words/sealed.ts";
import { HIDDEN, withoutSealed, withoutSecrets } from "./redact-values.ts";
import { createShownTask, type ShownTask } from "./rendered-task.ts";
import { type Done, judgeNothing, placeOf, RENDER_LIMITS, readable, type TaskPlace } from "./replay-pipeline.ts";

/** What {@link renderCommand} renders. */
export interface RenderRequest {
  program: Program;
  /** As issued: the names that its templates may read, with their values at that time. */
  command: Command;
  /** The iteration of a loop; undefined outside loops. */
  iteration: number | undefined;
  /** Its task runs that have ended, in order. */
  done: readonly Done[];
}

/**
 * The tasks of a command with the values of their templates as rendered, or as they would be rendered now; empty for the claim
 * of a cursor. Secrets are withheld from the templates, so that nothing derived from one is shown: sealed values stay sealed,
 * the keychain and the environment belong to the worker. Results that are not inline are not loaded.
 */
export function renderCommand({ program, command, iteration, done }: RenderRequest): RenderedTask[] {
  const step = program.steps.get(command.step);
  if (step === undefined || command.claim !== undefined) return [];
  const { context } = command;
  const shownContext = {
    ...context,
    workload: withoutSecrets(context.workload),
    vars: withoutSealed(context.vars),
    steps: withoutSealed(context.steps as unknown as Json) as unknown as typeof context.steps,
    input: withoutSecrets(context.input),
  };
  const place: PipelinePlace = {
    command: { ...command, context: shownContext },
    spec: program.playbook.spec,
    references: noReferences,
    env: HIDDEN as JsonObject,
    keychain: HIDDEN,
  };
  return step.tasks.map((task) =>
    renderTask(program, place, step, task, placeOf(place, step, iteration, done, task), context.input),
  );
}

function renderTask(
  program: Program,
  place: PipelinePlace,
  step: ProgramStep,
  task: ProgramTask,
  at: TaskPlace,
  arrived: JsonObject,
): RenderedTask {
  const target = calledTask(program, task);
  const shown = createShownTask(task.task.label, (target ?? task).task.kind);
  for (const key of Object.keys(arrived)) shown.arrived(key, own(arrived, key) as Json);
  const defaults = target === undefined || target === task ? [] : target.input;
  const input = renderInput(
    place,
    at,
    [ownInputs(step, place.command.context.given), [...defaults, ...task.input]],
    shown,
  );
  if (target === undefined) {
    shown.failed(`The workbook has no tool '${workbookName(task.task)}'`);
    return shown.end();
  }
  const known = knowledgeAt(place, at, input);
  const { auth, config } = target;
  if (auth !== undefined) shown.config("auth", auth.source, renderKnown(auth.source, known));
  shown.config(undefined, config.source, renderKnown(config.source, known));
  return shown.end();
}

/** In the worker's order: each layer sees the values of those before it. */
function renderInput(
  place: PipelinePlace,
  at: TaskPlace,
  layers: readonly (readonly (readonly [string, Template])[])[],
  shown: ShownTask,
): JsonObject {
  const input = { ...place.command.context.input };
  for (const templates of layers) {
    const seen = { ...input };
    for (const [key, { source }] of templates) {
      const rendered: Rendered = looksSecret(key, source)
        ? { value: SECRET_MASK, secret: [""] }
        : renderKnown(source, knowledgeAt(place, at, seen));
      setOwn(input, key, readable(rendered));
      shown.input(key, source, rendered);
    }
  }
  return input;
}

function knowledgeAt(place: PipelinePlace, { names, run, extra }: TaskPlace, input: JsonObject): Knowledge {
  const scope = taskScope(place, names, { input: () => input, attempt: run, extra });
  return { scope, judge: judgeNothing, limits: RENDER_LIMITS };
}
