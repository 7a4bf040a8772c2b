import { queryOptions } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import type { RenderedTask } from "../../api/types.ts";

/** Whose inputs are wanted: those of a claim of a command, of one iteration where it runs some. */
export interface RenderedRequest {
  executionId: string;
  commandId: string;
  attempt: number;
  iteration: number | undefined;
}

/** The inputs of a command's tasks, as they are written and as they were rendered. */
export function renderedInputs({ executionId, commandId, attempt, iteration }: RenderedRequest) {
  return queryOptions({
    queryKey: ["rendered", executionId, commandId, attempt, iteration ?? -1],
    staleTime: 30_000,
    queryFn: async ({ signal }): Promise<{ tasks: RenderedTask[] }> => {
      const path = { execution_id: executionId };
      const query = {
        command_id: commandId,
        attempt: String(attempt),
        ...(iteration !== undefined && { iteration: String(iteration) }),
      };
      return await api("GET /api/executions/:execution_id/rendered", { params: path, query, signal });
    },
  });
}
