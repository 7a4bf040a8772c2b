/** What can be seen of access. */
export const ACCESS_TABS = ["users", "roles", "permissions", "check", "audit"] as const;
export type AccessTab = (typeof ACCESS_TABS)[number];
