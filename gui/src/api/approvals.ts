import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { type Answer, api } from "./client.ts";

/** An approval: what is asked, who may decide, and what they have said. */
export type Approval = Answer<"GET /api/approvals">["approvals"][number];

/** Which approvals are listed: those that wait for the caller, or all of a status. */
export type ApprovalView = "mine" | Approval["status"];

/** How often lists of approvals look for news, milliseconds. */
const APPROVALS_MS = 5_000;
/** After a refusal. */
const REFUSED_MS = 60_000;

/** The newest approvals that wait for the caller. The rail counts them, home and inbox list them. */
export function myApprovals() {
  return queryOptions({
    queryKey: ["approvals", "mine"],
    queryFn: ({ signal }) => api("GET /api/approvals", { query: { mine: "true" }, signal }),
    refetchInterval: ({ state }) => (state.status === "error" ? REFUSED_MS : APPROVALS_MS),
  });
}

/** Approvals of a view, newest first, page by page. */
export function approvalList(view: ApprovalView) {
  return infiniteQueryOptions({
    queryKey: ["approvals", "list", view],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) => {
      const query = {
        ...(view === "mine" ? { mine: "true" as const } : { status: view }),
        ...(pageParam !== null && { cursor: pageParam }),
      };
      return api("GET /api/approvals", { query, signal });
    },
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: APPROVALS_MS,
  });
}

/** One approval. */
export function approvalDetail(approvalId: string) {
  return queryOptions({
    queryKey: ["approvals", "one", approvalId],
    queryFn: ({ signal }) => api("GET /api/approvals/:approval_id", { params: { approval_id: approvalId }, signal }),
  });
}
