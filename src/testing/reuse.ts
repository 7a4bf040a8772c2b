import type { Program } from "../engine/program/program.ts";
import { FlowError } from "../schema/words/errors.ts";
import { failed, type ToolResult } from "../schema/words/outcome.ts";
import { mayHoldSealed, SECRET_MASK } from "../schema/words/sealed.ts";
import type { Tool, ToolCall } from "../tools/contract/tool.ts";
import { hasNotes, instrument, takeNotes } from "./instrument.ts";
import { recordedAnswers } from "./recorded-answers.ts";
import type { RecordedRun } from "./recorded-run.ts";

/** A run that begins at a step: what comes before it is taken from a record. */
export interface Reuse {
  /** The program to run: that of the playbook, with the calls of sub-playbooks that are reused. */
  program: Program;
  /** Steps whose tasks answer from the record, in the order of the document. */
  steps: readonly string[];
  /** The tools of the run. */
  tools(real: Tools): Tools;
}

interface Tools {
  get(kind: string): Promise<Tool>;
}

/**
 * Runs a playbook from a step on: that step and all that can follow it run, the tasks of others answer what they answered in the record,
 * without the tries that failed before. A step that the record never came to runs. Throws `FlowError` NOT_FOUND for an unknown step.
 */
export function reuseBefore(program: Program, from: string, run: RecordedRun): Reuse {
  const names = program.playbook.steps.map(({ name }) => name);
  const start = names.indexOf(from);
  if (start < 0)
    throw new FlowError("NOT_FOUND", `--from: the playbook has no step '${from}'. Its steps are: ${names.join(", ")}`);
  const answers = recordedAnswers(run, { isFinalOnly: true });
  const before = new Set(names.filter((_, index) => index !== start && !program.graph.reaches(start, index)));
  const isReused = (step: string, task: string) => before.has(step) && answers.has(`${step}.${task}`);
  const answer = (kind: string, call: ToolCall): ToolResult => {
    const { config, iter } = takeNotes(call.config);
    const { index } = iter;
    const iteration = typeof index === "number" ? index : undefined;
    const found = answers.next(`${call.step}.${call.task}`, iteration, kind, config);
    // A real tool must not be given the mask in place of a secret.
    const isHidden = typeof found === "object" && hidesValues(found);
    if (typeof found === "object" && !isHidden) return found;
    const hidden = isHidden ? `${run.file} hides sensitive values in the result of step '${call.step}'` : undefined;
    const why = hidden ?? found ?? `${run.file} has no answer for this call of step '${call.step}'`;
    return failed("configuration", "RESULT_NOT_REUSABLE", `${why}. Begin at this step: --from ${call.step}`);
  };
  return {
    program: instrument(program, isReused),
    steps: names.filter(
      (name) =>
        before.has(name) && [...(program.steps.get(name)?.tasks ?? [])].some(({ task }) => isReused(name, task.label)),
    ),
    tools: (real) => ({
      async get(kind) {
        // Only the calls of this playbook have notes: those of its sub-playbooks run.
        const isNoted = (call: ToolCall) => hasNotes(call.config) && isReused(call.step, call.task);
        let tool: Promise<Tool> | undefined;
        const run = async (call: ToolCall): Promise<ToolResult> => {
          if (isNoted(call) && kind !== "noop") return answer(kind, call);
          tool ??= real.get(kind);
          return await (await tool).run(
            hasNotes(call.config) ? { ...call, config: takeNotes(call.config).config } : call,
          );
        };
        const { defaultTimeoutMs } = kind.includes("(mocked)") ? {} : await real.get(kind);
        return defaultTimeoutMs === undefined ? { run } : { run, defaultTimeoutMs };
      },
    }),
  };
}

/** Sealed values of a local run are lost with its key. */
function hidesValues({ data = null }: ToolResult): boolean {
  const text = JSON.stringify(data);
  return text.includes(SECRET_MASK) || mayHoldSealed(text);
}
