import { queryOptions } from "@tanstack/react-query";
import { problemOf, unreachable } from "../api/problem.ts";
import { addressOf, authorization } from "../api/session.ts";

/** What a task of a command was given. */
export interface RenderedTask {
  task: string;
  kind: string;
  /** As the playbook has it. */
  template: unknown;
  /** With its templates rendered; in the place of secrets stands `[secret]`. Null where that is too long. */
  rendered: unknown;
  /** Places that read what is not known here. */
  unknown?: readonly { path: string; waits_for: readonly string[] }[];
  /** Places that hold secrets. */
  secret?: readonly string[];
  errors?: readonly { path: string; message: string }[];
}

/** Whose inputs are wanted: those of a claim of a command, of one iteration where it runs some. */
export interface RenderedAsked {
  executionId: string;
  commandId: string;
  attempt: number;
  iteration: number | undefined;
}

/** The inputs of a command's tasks. */
export function renderedInputs({ executionId, commandId, attempt, iteration }: RenderedAsked) {
  return queryOptions({
    queryKey: ["rendered", executionId, commandId, attempt, iteration ?? -1],
    staleTime: 30_000,
    queryFn: async ({ signal }): Promise<{ tasks: RenderedTask[] }> => {
      const query = new URLSearchParams({ command_id: commandId, attempt: String(attempt) });
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
