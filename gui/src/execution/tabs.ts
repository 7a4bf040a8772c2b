/** What one execution's page can show beneath the answer. */
export const EXECUTION_TABS = [
  "steps",
  "graph",
  "timeline",
  "events",
  "data",
  "children",
  "lineage",
  "compare",
] as const;
export type ExecutionTab = (typeof EXECUTION_TABS)[number];
