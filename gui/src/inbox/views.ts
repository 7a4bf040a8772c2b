import type { ApprovalView } from "../api/approvals.ts";

/** What the inbox can show: its name, and what it says where there is nothing. */
export const INBOX_VIEWS: Readonly<Record<ApprovalView, { name: string; none: string }>> = {
  mine: { name: "Waiting for me", none: "Nothing waits for you" },
  open: { name: "All open", none: "No approval is open" },
  approved: { name: "Approved", none: "Nothing has been approved yet" },
  rejected: { name: "Rejected", none: "Nothing has been rejected yet" },
  expired: { name: "Expired", none: "No approval has expired" },
  cancelled: { name: "Cancelled", none: "No approval has been cancelled" },
};
