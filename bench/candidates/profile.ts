import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** What of a `.cpuprofile` is read here. */
interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
}

const LINES = 25;

/** Arguments for Node that make a process write a profile into a folder when it ends. */
export function profiling(folder: string, name: string): string[] {
  return ["--cpu-prof", "--cpu-prof-dir", folder, "--cpu-prof-name", `${name}.cpuprofile`];
}

/** Where each process of a folder's profiles was at work: the functions with most time of their own, as text. */
export async function summarizeProfiles(folder: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".cpuprofile")).sort();
  const parts = names.map(
    async (name) => `${name}\n${summary(JSON.parse(await readFile(join(folder, name), "utf8")))}`,
  );
  return (await Promise.all(parts)).join("\n");
}

function summary({ nodes, samples, timeDeltas }: Profile): string {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const own = new Map<string, number>();
  let total = 0;
  for (const [index, id] of samples.entries()) {
    const microseconds = timeDeltas[index] ?? 0;
    const { functionName = "", url = "", lineNumber = 0 } = frames.get(id) ?? {};
    // Idle time cannot be saved.
    if (functionName === "(idle)") continue;
    const place = url === "" ? "" : `  ${url.split("/").slice(-2).join("/")}:${lineNumber + 1}`;
    const where = `${functionName || "(anonymous)"}${place}`;
    own.set(where, (own.get(where) ?? 0) + microseconds);
    total += microseconds;
  }
  const sorted = [...own].sort(([, left], [, right]) => right - left).slice(0, LINES);
  const lines = sorted.map(([where, microseconds]) => {
    const share = ((microseconds * 100) / total).toFixed(1).padStart(5);
    return `${share} %  ${Math.round(microseconds / 1_000)} ms  ${where}\n`;
  });
  return `${(total / 1e6).toFixed(1)} s at work\n${lines.join("")}`;
}
