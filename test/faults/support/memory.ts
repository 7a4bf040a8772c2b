import { readFileSync } from "node:fs";

/** Memory of a process that is in use now, in megabytes. */
export function residentMb(pid: number): number {
  return field(pid, "VmRSS");
}

/** The most that a process has ever used, in megabytes. */
export function peakMb(pid: number): number {
  return field(pid, "VmHWM");
}

function field(pid: number, name: string): number {
  const [, kilobytes] = new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  if (kilobytes === undefined) throw new Error(`The system does not say ${name} of process ${pid}`);
  return Number(kilobytes) / 1_024;
}
