/** States of an execution. The last three are final. */
export const EXECUTION_STATES = ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"] as const;
export type ExecutionStateName = (typeof EXECUTION_STATES)[number];
