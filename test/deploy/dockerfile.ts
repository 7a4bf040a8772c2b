import { readFileSync } from "node:fs";
import { packagePath } from "../../src/platform/system/package-file.ts";

/** One instruction: `COPY`, and what follows it on its line and on those that continue it. */
export interface Instruction {
  name: string;
  text: string;
}

/** The stages of the Dockerfile in order, each from its `FROM` on. What stands before the first is left out. */
export function readStages(): Instruction[][] {
  const lines = readFileSync(packagePath("Dockerfile"), "utf8")
    .split("\n")
    .filter((line) => !/^\s*(#|$)/.test(line));
  const instructions = lines
    .join("\n")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .map((line) => ({ name: /^\S+/.exec(line)?.[0] ?? "", text: line.replace(/^\S+\s+/, "") }));
  const stages: Instruction[][] = [];
  for (const instruction of instructions) {
    if (instruction.name === "FROM") stages.push([]);
    stages.at(-1)?.push(instruction);
  }
  return stages;
}

/** A `COPY`: sources and the target as they stand there, and the stage that it copies from. */
export interface Copy {
  from: string | undefined;
  sources: string[];
  target: string;
}

/** The copies of a stage. */
export function copiesOf(stage: readonly Instruction[]): Copy[] {
  return stage
    .filter(({ name }) => name === "COPY")
    .map(({ text }) => {
      const words = text.split(/\s+/);
      const from = words[0]?.startsWith("--from=") ? words.shift()?.slice("--from=".length) : undefined;
      return { from, sources: words.slice(0, -1), target: words.at(-1) ?? "" };
    });
}

/** The text of the last instruction of this name. Throws if it is missing. */
export function last(stage: readonly Instruction[], name: string): string {
  const found = stage.findLast((instruction) => instruction.name === name);
  if (found === undefined) throw new Error(`The stage has no ${name}`);
  return found.text;
}
