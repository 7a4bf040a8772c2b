/** Processor time of the piece of work below on a machine of usual speed, ms. */
const USUAL_MS = 120;

/**
 * How many times the usual processor time this machine takes for a fixed piece of work; 1 for a faster one. Limits of processor time are
 * multiplied by it: machines for tests differ by three times from day to day.
 */
export function slowness(): number {
  workedMs();
  return Math.max(1, workedMs() / USUAL_MS);
}

function workedMs(): number {
  const began = process.cpuUsage();
  let sum = 0;
  for (let index = 0; index < 40_000_000; index += 1) sum = (sum * 31 + index) | 0;
  const { user, system } = process.cpuUsage(began);
  // The sum is read, so that the loop is not left out.
  return (user + system) / 1_000 + (sum === 1 ? 1 : 0);
}
