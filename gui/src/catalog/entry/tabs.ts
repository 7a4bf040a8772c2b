/** What a catalog entry's page can show. */
export const ENTRY_TABS = [
  "overview",
  "run",
  "document",
  "graph",
  "versions",
  "executions",
  "credentials",
  "keychain",
] as const;
export type EntryTab = (typeof ENTRY_TABS)[number];
