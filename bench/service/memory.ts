import type { FlowCandidate } from "../candidates/flow.ts";
import type { Measurement } from "../report/measurement.ts";

/** Does the work and gives its value, and the memory of server and worker before and after it as lines of the table. */
export async function withMemory<T>(
  name: string,
  flow: FlowCandidate,
  work: () => Promise<T>,
): Promise<{ value: T; lines: Measurement[] }> {
  const before = await flow.memoryMb();
  const value = await work();
  const after = await flow.memoryMb();
  const lines = (["server", "worker"] as const).flatMap((process) => [
    { name: `${name}: memory of the ${process} before`, value: before[process], unit: "MB" },
    { name: `${name}: memory of the ${process} after`, value: after[process], unit: "MB" },
  ]);
  return { value, lines };
}
