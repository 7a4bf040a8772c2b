import { queryOptions } from "@tanstack/react-query";
import { problemOf, unreachable } from "../api/problem.ts";
import { addressOf, authorization } from "../api/session.ts";

/** What a task of a command was given. */
export interface RenderedTask {
  task: string;
  kind: string;
  /** As the playbook has it. */
  template: unknown;
  /** With its templates rendered; secrets are `****`. */
  rendered: unknown;
  /** Places whose value only comes to be while the command runs. */
  unknown?: readonly { path: string; waits_for: string }[];
  /** Places that hold secrets. */
  secret?: readonly string[];
  errors?: readonly { path: string; message: string }[];
}

/** The inputs of a command's tasks, of one iteration where it runs some. */
export function renderedInputs(executionId: string, commandId: string, iteration: number | undefined) {
  return queryOptions({
    queryKey: ["rendered", executionId, commandId, iteration ?? -1],
    staleTime: 30_000,
    queryFn: async ({ signal }): Promise<{ tasks: RenderedTask[] }> => {
      const query = new URLSearchParams({ command_id: commandId });
      if (iteration !== undefined) query.set("iteration", String(iteration));
      const path = addressOf(`/api/executions/${encodeURIComponent(executionId)}/rendered`);
      const asked = { headers: authorization(), signal, credentials: "same-origin" as const };
      const response = await fetch(`${path}?${query}`, asked).catch((error: unknown) => {
        throw unreachable(error);
      });
      if (!response.ok) throw await problemOf(response);
      return (await response.json()) as { tasks: RenderedTask[] };
    },
  });
}
