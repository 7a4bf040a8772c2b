/** Where an execution stands in a distributed trace; all of it in the forms of W3C Trace Context. */
export interface TraceRef {
  /** `traceparent` under which the execution's commands run. */
  context: string;
  /** Span id of the caller; present if the execution has a span of its own, whose parent it is. */
  parent?: string;
}
