import type { Attempt } from "./attempts.ts";

/**
 * What each of a step's attempts is called, by its key: `Run 2, attempt 1`, `Iteration 7`. `attempts` newest first. `runs` is how
 * often the step was started: where earlier ones were not read (`isWhole` false), numbers are counted down from it.
 */
export function attemptTitles(attempts: readonly Attempt[], runs: number, isWhole: boolean): Map<string, string> {
  const stepRuns = [...new Set(attempts.map(({ stepRunId, commandId }) => stepRunId ?? commandId))];
  const last = isWhole ? stepRuns.length : Math.max(runs, stepRuns.length);
  const claims = new Map<string, number>();
  const commands = new Map<string, Set<string>>();
  for (const { commandId, stepRunId = commandId, attempt } of attempts) {
    claims.set(commandId, Math.max(attempt, claims.get(commandId) ?? 0));
    commands.set(stepRunId, (commands.get(stepRunId) ?? new Set()).add(commandId));
  }
  return new Map(
    attempts.map(({ key, commandId, stepRunId = commandId, attempt, iterations }) => {
      const parts = last > 1 ? [`run ${last - stepRuns.indexOf(stepRunId)}`] : [];
      if (iterations !== undefined) parts.push(`iteration ${iterations}`);
      // A cursor's claims are commands of one run without an iteration of their own.
      else if ((commands.get(stepRunId)?.size ?? 1) > 1) parts.push(`command ${commandId}`);
      if (parts.length === 0 || (claims.get(commandId) ?? 1) > 1) parts.push(`attempt ${attempt}`);
      const title = parts.join(", ");
      return [key, title.charAt(0).toUpperCase() + title.slice(1)];
    }),
  );
}
