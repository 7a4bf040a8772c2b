import type { ProgramStep } from "../../engine/program/program.ts";
import type { CommandLoop } from "../../schema/words/command.ts";
import type { CommandRef } from "../../schema/words/event.ts";
import { type JsonObject, setOwn } from "../../schema/words/json.ts";
import type { Report } from "../deps.ts";
import type { CommandContext } from "../task/command-context.ts";
import { freshState, type PipelineEnd, pipelineMark, runPipeline } from "../task/pipeline.ts";

/**
 * Runs the iterations of a command, as many at a time as the loop allows, and reports each as it ends. What one wrote is
 * seen by those that start after it.
 */
export async function runIterations(
  context: CommandContext,
  step: ProgramStep,
  loop: CommandLoop,
  ref: CommandRef,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const written: JsonObject = {};
  let next = 0;
  let ended = 0;
  let isStopped = false;
  const { below = loop.from, above = [] } = loop.ended ?? {};
  const { stops } = context.deps;
  const watched = stops?.watch(signal);
  const runInTurn = async () => {
    while (!isStopped && !signal.aborted && next < loop.items.length) {
      const offset = next;
      next += 1;
      const iteration = loop.from + offset;
      if (iteration < below || above.includes(iteration) || stops?.has(iteration) === true) {
        ended += 1;
        continue;
      }
      const run = (own: AbortSignal) => runIteration(context, step, loop, offset, written, ref, report, own);
      const end = await (watched === undefined ? run(signal) : watched.run(iteration, run));
      ended += 1;
      // Its end is that which a person gave it: nothing of its own counts.
      if (stops?.has(iteration) === true) continue;
      // Those that begin together see nothing of each other, as little as in commands of their own.
      if (loop.at_once !== true) for (const [name, value] of end.set) setOwn(written, name, value);
      if (end.error !== null && loop.stop_on_error) isStopped = true;
    }
  };
  const concurrency = Math.max(1, Math.min(loop.max_in_flight, loop.items.length));
  const stopped = async () => {
    try {
      await runInTurn();
    } catch (error) {
      isStopped = true;
      throw error;
    }
  };
  // All of them are waited for: a command that has reported its end must not work on.
  const ends = await Promise.allSettled(Array.from({ length: concurrency }, stopped));
  watched?.end();
  const broken = ends.find((end) => end.status === "rejected");
  if (broken !== undefined) throw broken.reason;
  // Claimed rows that no iteration will process have failed, each of them: none is dropped silently.
  if (loop.frame_ends_at !== undefined && signal.aborted && ended < loop.items.length) throw signal.reason;
  await report([{ type: "command.completed", at: context.deps.clock.now(), ...ref, iterations: ended }]);
}

async function runIteration(
  context: CommandContext,
  step: ProgramStep,
  loop: CommandLoop,
  offset: number,
  written: JsonObject,
  ref: CommandRef,
  report: Report,
  signal: AbortSignal,
): Promise<PipelineEnd> {
  const iteration = loop.from + offset;
  const parent = context.place.command.context.parent_iter;
  const names = {
    iterator: step.step.loop?.iterator ?? "item",
    item: loop.items[offset] ?? null,
    index: iteration,
    ...(loop.total !== undefined && { total: loop.total }),
    ...(parent !== undefined && { parent }),
    written: {},
  };
  const state = freshState(names, { ...written });
  const { woken } = context.place.command;
  const resumed = woken?.resume.iteration === iteration ? { woken } : {};
  // Others of the command would have to stop with it.
  const mayPark = loop.items.length === 1 && loop.frame_ends_at === undefined;
  const end = await runPipeline({
    context,
    step,
    state,
    ref: { ...ref, iteration },
    report,
    signal,
    mayPark,
    ...resumed,
  });
  const body = {
    ...ref,
    iteration,
    tasks: end.tasks,
    ...pipelineMark(step),
    ...(end.results.length > 0 && { results: end.results }),
    ...(end.set.length > 0 && { set: end.set }),
  };
  const at = context.deps.clock.now();
  await report([
    end.error === null
      ? { type: "loop.iteration.completed", at, ...body }
      : { type: "loop.iteration.failed", at, ...body, error: end.error },
  ]);
  return end;
}
