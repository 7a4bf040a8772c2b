import { queryOptions, useQuery } from "@tanstack/react-query";
import { isSystemPath } from "../../../src/schema/rules/access-rules.ts";
import { api } from "../api/client.ts";

/** How often the lists of this page look for news, milliseconds. */
const HOME_MS = 5_000;
/** As many failed executions are looked at. */
const FAILED_MAX = 100;

/** The newest failed executions of the last day that no other execution called. */
export function recentFailures() {
  return queryOptions({
    queryKey: ["home", "failures"],
    queryFn: ({ signal }) => {
      const query = {
        status: "FAILED",
        roots_only: "true",
        since: new Date(Date.now() - 86_400_000).toISOString(),
        limit: String(FAILED_MAX),
      };
      return api("GET /api/executions", { query, signal });
    },
    refetchInterval: HOME_MS,
  });
}

/** Whether there is neither an execution nor a playbook; undefined: not known yet. */
export function useIsEmpty(): boolean | undefined {
  const executions = useQuery({
    queryKey: ["home", "any execution"],
    queryFn: async ({ signal }) =>
      (await api("GET /api/executions", { query: { limit: "1" }, signal })).executions.length,
    refetchInterval: (query) => (query.state.data === 0 ? HOME_MS : false),
  });
  const playbooks = useQuery({
    queryKey: ["home", "any playbook"],
    queryFn: async ({ signal }) =>
      (await api("GET /api/catalog", { query: { limit: "50" }, signal })).resources.filter(
        ({ path }) => !isSystemPath(path),
      ).length,
  });
  if (executions.isError || playbooks.isError) return false;
  if (executions.data === undefined || playbooks.data === undefined) return undefined;
  return executions.data === 0 && playbooks.data === 0;
}
