import type { Candidate } from "../candidates/candidate.ts";
import type { Measurement } from "./measurement.ts";

type Name = Candidate["name"];

/** A figure of each candidate that gave one. */
export type Figures<T = number> = ReadonlyMap<Name, T>;

/** What a figure is to be. */
export type Goal = Pick<Measurement, "target" | "better">;

/** Measures one candidate after the other, and says of whom and `what`. A candidate that fails has no figure; the reason goes to `log`. */
export async function measureEach<C extends Pick<Candidate, "name">, T>(
  candidates: readonly C[],
  log: (line: string) => void,
  what: string,
  measure: (candidate: C) => Promise<T>,
): Promise<Figures<T>> {
  const figures = new Map<Name, T>();
  for (const candidate of candidates) {
    log(`  ${what}: ${candidate.name}`);
    try {
      figures.set(candidate.name, await measure(candidate));
    } catch (error) {
      log(`${candidate.name} failed: ${error instanceof Error ? error.message : error}`);
    }
  }
  return figures;
}

/** The same figure of every candidate, from what was measured of it. */
export function figuresOf<T>(measured: Figures<T>, pick: (value: T) => number): Figures {
  return new Map([...measured].map(([name, value]) => [name, pick(value)]));
}

/** A line of the table: flow's figure, the others beside it. NaN where flow failed. */
export function line(name: string, unit: string, figures: Figures, goal: Goal = {}): Measurement {
  const { flow = Number.NaN, ...beside } = Object.fromEntries(figures);
  return { name, value: flow, unit, ...(Object.keys(beside).length > 0 && { beside }), ...goal };
}

/** At least this. */
export function atLeast(target: number): Goal {
  return { target, better: "more" };
}

/** At most this. */
export function atMost(target: number): Goal {
  return { target, better: "less" };
}
