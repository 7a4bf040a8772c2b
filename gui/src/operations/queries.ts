import { queryOptions } from "@tanstack/react-query";
import { api } from "../api/client.ts";

/** How often the service is examined, milliseconds: that reads whole tables' figures. */
const DIAGNOSIS_MS = 20_000;

/** What the doctor finds, and what to do. */
export function diagnosis() {
  return queryOptions({
    queryKey: ["diagnosis"],
    queryFn: ({ signal }) => api("GET /api/admin/diagnosis", { signal }),
    refetchInterval: DIAGNOSIS_MS,
    retry: false,
  });
}
