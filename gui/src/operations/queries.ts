import { queryOptions } from "@tanstack/react-query";
import { api } from "../api/client.ts";

/** Polling interval of the overview, milliseconds: its statements are bounded. */
const OVERVIEW_MS = 3_000;
/** How often the service is examined, milliseconds: that reads whole tables' figures. */
const DIAGNOSIS_MS = 20_000;

/** Why is nothing running. What was read last stays while the server is gone. */
export function overview() {
  return queryOptions({
    queryKey: ["overview"],
    queryFn: ({ signal }) => api("GET /api/admin/overview", { signal }),
    refetchInterval: OVERVIEW_MS,
    retry: false,
  });
}

/** What the doctor finds, and what to do. */
export function diagnosis() {
  return queryOptions({
    queryKey: ["diagnosis"],
    queryFn: ({ signal }) => api("GET /api/admin/diagnosis", { signal }),
    refetchInterval: DIAGNOSIS_MS,
    retry: false,
  });
}
