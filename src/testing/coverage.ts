import type { Program } from "../engine/program/program.ts";

/** How much of a playbook its tests have been through. */
export interface Coverage {
  steps: Covered;
  arcs: Covered;
}

/** How many there are, and the names of those that no test came to. */
export interface Covered {
  total: number;
  covered: number;
  missing: string[];
}

/** The steps that were started and the arcs that were taken by these tests, of those of the playbook. Arcs are named `from → to`. */
export function coverageOf({ steps }: Program, outcomes: readonly { steps: string[]; arcs: string[] }[]): Coverage {
  const arcs = [...steps.values()].flatMap(({ step }) =>
    // A target that is a template leads to no step in particular.
    step.next.arcs.filter((arc) => steps.has(arc.step)).map((arc) => arcName(step.name, arc.step)),
  );
  return {
    steps: covered(
      [...steps.keys()],
      outcomes.flatMap((outcome) => outcome.steps),
    ),
    arcs: covered(
      [...new Set(arcs)],
      outcomes.flatMap((outcome) => outcome.arcs),
    ),
  };
}

/** The name of an arc. */
export function arcName(from: string, to: string): string {
  return `${from} → ${to}`;
}

function covered(all: readonly string[], seen: readonly string[]): Covered {
  const known = new Set(seen);
  const missing = all.filter((name) => !known.has(name));
  return { total: all.length, covered: all.length - missing.length, missing };
}
