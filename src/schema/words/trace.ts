/** An execution's place in a distributed trace, in the formats of W3C Trace Context. */
export interface TraceRef {
  /** `traceparent` under which the execution's commands run. */
  context: string;
  /** Span id of the caller; present if the execution has a separate span, whose parent it is. */
  parent?: string;
}
