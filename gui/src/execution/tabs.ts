/** What the page of one execution can show beneath the answer. */
export const EXECUTION_TABS = ["trace", "graph", "log", "data", "files", "events", "compare", "lineage"] as const;
export type ExecutionTab = (typeof EXECUTION_TABS)[number];
