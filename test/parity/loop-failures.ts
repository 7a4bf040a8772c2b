import { stringify } from "yaml";
import type { JsonObject } from "../../src/schema/words/json.ts";

/*
 * What a loop does about iterations that fail (language document, sections 6 and 12), in every mode and carried out in both
 * ways. A sequential loop starts no further iteration after a failure and a parallel one runs all, unless `on_error` says
 * otherwise; the step fails then, unless the failures are tolerated.
 */

const ITEMS = [0, 1, 2, 3, 4];
const BAD = [1, 3];

interface LoopCase {
  name: string;
  mode: string;
  exec: string;
  onError: string | JsonObject | undefined;
  ended: JsonObject;
}

const ALL = { total: 5, success: 3, failed: 2 };
const STOPPED = { total: 5, success: 1, failed: 1 };

function loopCases(): LoopCase[] {
  const settings: [string, string | JsonObject | undefined][] = [
    ["unsaid", undefined],
    ["stop", "stop"],
    ["continue", "continue"],
    ["tolerated", { tolerate: 2 }],
    ["all_tolerated", { tolerate: "100%" }],
  ];
  return ["sequential", "parallel"].flatMap((mode) =>
    ["distributed", "local"].flatMap((exec) =>
      settings.map(([what, onError]): LoopCase => {
        const stops = mode === "sequential" && (onError === undefined || onError === "stop");
        const tolerates = typeof onError === "object";
        const ended = { stats: stops ? STOPPED : ALL, status: tolerates ? "completed" : "failed", taken: !tolerates };
        return { name: `${mode}_${exec}_${what}`, mode, exec, onError, ended };
      }),
    ),
  );
}

/** One playbook with all of them, and what it must come to. */
export function loopFailuresDocument(): { path: string; content: string; expected: JsonObject } {
  const cases = loopCases();
  const steps = cases.map(({ name, mode, exec, onError }, index) => {
    const next = cases[index + 1]?.name ?? "end";
    return {
      step: name,
      loop: {
        in: ITEMS,
        iterator: "n",
        // At once, so that stopping changes nothing where it comes too late.
        spec: { mode, policy: { exec }, ...(onError !== undefined && { on_error: onError }) },
      },
      tool: {
        kind: "noop",
        result: { n: "{{ n }}" },
        spec: {
          policy: {
            rules: [
              {
                when: `{{ n in ${JSON.stringify(BAD)} }}`,
                then: { do: "fail", code: "BAD", message: "{{ n }} is bad" },
              },
            ],
          },
        },
      },
      next: {
        arcs: [
          { step: next, when: "{{ event.name == 'step.failed' }}", set: { [`${name}_taken`]: true } },
          { step: next, set: { [`${name}_taken`]: false } },
        ],
      },
    };
  });
  const probes = cases.map(({ name }) => [
    name,
    {
      stats: `{{ ${name}.stats }}`,
      status: `{{ ${name}.status }}`,
      taken: `{{ ${name}_taken }}`,
      failed: `{{ ${name}.results | selectattr('status', 'equalto', 'error') | map(attribute='error') | map(attribute='message') | list }}`,
    },
  ]);
  const end = { step: "end", tool: { kind: "noop", result: Object.fromEntries(probes) } };
  const path = "parity/generated/loop_failures";
  const content = stringify(
    {
      apiVersion: "flow/v2",
      kind: "Playbook",
      metadata: { name: "loop_failures", path },
      executor: { spec: { entry_step: cases[0]?.name ?? "end" } },
      workflow: [...steps, end],
    },
    { lineWidth: 0 },
  );
  const expected = cases.map(({ name, ended }) => {
    const failed = BAD.slice(0, (ended["stats"] as typeof ALL).failed).map((n) => `${n} is bad`);
    return [name, { ...ended, failed }];
  });
  return { path, content, expected: Object.fromEntries(expected) };
}
