import { randomInt } from "node:crypto";
import { seededRandom } from "../../simulator/random.ts";

/*
 * The attacks through every input are some 25,000 calls: two minutes of a processor. `npm test` makes those in which an input stands as it is,
 * and of the odd forms a part, in each run another; every form of an input comes up with one user and path or another in most
 * runs. `npm run attack` makes them all, and `FLOW_SEED=<seed>` a run's part again.
 */

/** Of the odd forms, the share that a run tries where a test names no other. */
const SHARE = 1 / 6;
const ALL = process.env["FLOW_EVERY_FORM"] !== undefined;
const SEED = Number(process.env["FLOW_SEED"] ?? process.env["FLOW_FORMS_SEED"] ?? randomInt(2 ** 31));

/** What a run tries of the forms of inputs. */
export interface Sample {
  /** What repeats it, for the messages of failures. */
  told: string;
  /** Of these the ones that are to be tried, in their order; all that are plain are, unless its size says otherwise. */
  of<T extends { isPlain: boolean }>(tries: readonly T[]): T[];
}

/** How large a {@link Sample} is. */
export interface SampleSize {
  /** Of the odd forms the share that is tried. */
  share?: number;
  /** False: of those that are plain this share too. */
  allPlain?: boolean;
}

/** A sample of a test's own: a test that runs alone tries what it tried in the whole run. */
export function sampleOf(test: string, { share = SHARE, allPlain = true }: SampleSize = {}): Sample {
  const own = [...test].reduce((hash, char) => (Math.imul(hash, 31) + char.charCodeAt(0)) >>> 0, SEED);
  const random = seededRandom(own);
  return {
    told: ALL ? "all forms" : `FLOW_SEED=${SEED}`,
    of: (tries) => (ALL ? [...tries] : tries.filter(({ isPlain }) => random.chance(share) || (allPlain && isPlain))),
  };
}
