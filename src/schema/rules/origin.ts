/** What may start an execution. */
export const ORIGIN_KINDS = ["user", "trigger", "execution", "rerun", "bulk", "mcp"] as const;
export type OriginKind = (typeof ORIGIN_KINDS)[number];

/** What started an execution, where neither its parent nor the user in whose name it runs says so. */
export interface Origin {
  kind: OriginKind;
  /** The trigger, execution or bulk operation. Absent: the parent, or else the user. */
  id?: string;
  /** Its name at that moment, where nothing else keeps it: that of a trigger. */
  name?: string;
}
