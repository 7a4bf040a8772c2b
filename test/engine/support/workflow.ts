import fc from "fast-check";
import type { JsonObject } from "../../../src/schema/words/json.ts";

/** A random workflow, as the text of its document (JSON is YAML). */
export interface Workflow {
  text: string;
  /** Whether an arc leads back; without, no step runs twice. */
  hasBackArcs: boolean;
}

interface DrawnArc {
  to: number;
  condition: "none" | "even" | "large" | "failed" | "loop.done" | "never";
}

interface DrawnStep {
  forward: DrawnArc[];
  /** Leads back by so many steps, at most `times` times in a run. */
  back: { by: number; times: number } | null;
  inclusive: boolean;
  guarded: boolean;
  writes: boolean;
  loop: JsonObject | null;
}

const CONDITIONS = {
  none: undefined,
  even: "{{ (result.v | default(0)) % 2 == 0 }}",
  large: "{{ (x | default(0)) > 4 }}",
  failed: "{{ event.name == 'step.failed' }}",
  "loop.done": "{{ event.name == 'loop.done' }}",
  never: "{{ false }}",
} as const satisfies Record<DrawnArc["condition"], string | undefined>;

const onError = fc.constantFrom<unknown>(undefined, "stop", "continue", { tolerate: 1 }, { tolerate: "50%" });

const loop: fc.Arbitrary<JsonObject> = fc
  .record({
    collection: fc.constantFrom<unknown>(0, 1, 3, 5, [], ["a", "b"], { k: 1, l: 2 }, "[1, 2]", "one", "{{ missing }}"),
    mode: fc.constantFrom("sequential", "parallel"),
    limit: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    exec: fc.constantFrom("distributed", "local"),
    onError,
  })
  .map((drawn) => {
    const spec = {
      mode: drawn.mode,
      max_in_flight: drawn.limit,
      policy: { exec: drawn.exec },
      on_error: drawn.onError,
    };
    return { in: drawn.collection, spec } as unknown as JsonObject;
  });

const step: fc.Arbitrary<DrawnStep> = fc.record({
  forward: fc.array(
    fc.record({
      to: fc.integer({ min: 1, max: 3 }),
      condition: fc.constantFrom<DrawnArc["condition"]>(
        "none",
        "none",
        "none",
        "even",
        "large",
        "failed",
        "loop.done",
        "never",
      ),
    }),
    { maxLength: 3 },
  ),
  back: rarely(fc.record({ by: fc.integer({ min: 0, max: 3 }), times: fc.integer({ min: 1, max: 2 }) })),
  inclusive: fc.boolean(),
  guarded: rarely(fc.constant(true)).map((drawn) => drawn ?? false),
  writes: fc.boolean(),
  loop: rarely(loop),
});

/** Null four times out of five. */
function rarely<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });
}

/**
 * Workflows of two to eight steps: any forward arcs, with conditions over results, variables and failures; arcs back that a
 * counter bounds, so that every run ends; loops of every mode; guards; joins wherever arcs meet.
 */
export const workflow: fc.Arbitrary<Workflow> = fc
  .record({
    steps: fc.array(step, { minLength: 2, maxLength: 8 }),
    final: rarely(fc.constant(true)),
    strict: rarely(fc.constant(true)),
  })
  .map(({ steps, final, strict }) => {
    const spec = { ...(final && { final_step: `s${steps.length - 1}` }), no_next_is_error: strict ?? false };
    const lines = steps.map((drawn, index) => `  - ${JSON.stringify(toStep(drawn, index, steps.length))}`);
    const text = `executor: ${JSON.stringify({ spec })}\nworkflow:\n${lines.join("\n")}\n`;
    return { text, hasBackArcs: steps.some(({ back }) => back !== null) };
  });

function toStep(drawn: DrawnStep, index: number, count: number): JsonObject {
  const arcs = drawn.forward
    .map(({ to, condition }) => ({ step: `s${index + to}`, when: CONDITIONS[condition], target: index + to }))
    .filter(({ target }) => target < count)
    .map(({ step: name, when }) => ({ step: name, when, set: { [`from${index}`]: "{{ x | default(0) }}" } }));
  return JSON.parse(
    JSON.stringify({
      step: `s${index}`,
      when: drawn.guarded ? "{{ (x | default(1)) % 3 != 0 }}" : undefined,
      loop: drawn.loop ?? undefined,
      set: drawn.writes ? { "ctx.x": "{{ (x | default(0)) + 1 }}" } : undefined,
      next: { spec: { mode: drawn.inclusive ? "inclusive" : "exclusive" }, arcs: [...backArc(drawn, index), ...arcs] },
    }),
  );
}

function backArc({ back }: DrawnStep, index: number) {
  if (back === null) return [];
  const counter = `c${index}`;
  const when = `{{ (${counter} | default(0)) < ${back.times} }}`;
  return [
    { step: `s${Math.max(0, index - back.by)}`, when, set: { [counter]: `{{ (${counter} | default(0)) + 1 }}` } },
  ];
}
