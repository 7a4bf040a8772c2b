import type { Attempt } from "./attempts.ts";

/**
 * The title of each of a step's attempts, by its key: `Run 2, attempt 1`, `Item 7`. `attempts` newest first. `runs` is how
 * often the step was started: if earlier ones were not read (`isWhole` false), numbers are counted down from it. An attempt
 * whose first event was not read, as in a list of failures, cannot be assigned to a run: its title is its item, else its
 * command.
 */
export function attemptTitles(attempts: readonly Attempt[], runs: number, isWhole: boolean): Map<string, string> {
  const stepRuns = [...new Set(attempts.flatMap(({ stepRunId }) => stepRunId ?? []))];
  const last = isWhole ? stepRuns.length : Math.max(runs, stepRuns.length);
  const claims = new Map<string, number>();
  const commands = new Map<string | undefined, Set<string>>();
  for (const { commandId, stepRunId, attempt } of attempts) {
    claims.set(commandId, Math.max(attempt, claims.get(commandId) ?? 0));
    commands.set(stepRunId, (commands.get(stepRunId) ?? new Set()).add(commandId));
  }
  return new Map(
    attempts.map(({ key, commandId, stepRunId, attempt, iterations }) => {
      const isNumbered = stepRunId !== undefined && last > 1;
      const parts = isNumbered ? [`run ${last - stepRuns.indexOf(stepRunId)}`] : [];
      if (iterations !== undefined) parts.push(`item ${iterations}`);
      // A cursor's claims are commands of one run without an iteration of their own.
      else if ((commands.get(stepRunId)?.size ?? 1) > 1) parts.push(`command ${commandId}`);
      if (parts.length === 0 || (claims.get(commandId) ?? 1) > 1) parts.push(`attempt ${attempt}`);
      const title = parts.join(", ");
      return [key, title.charAt(0).toUpperCase() + title.slice(1)];
    }),
  );
}
