/** Where an execution stands in a distributed trace; all of it in the forms of W3C Trace Context. */
export interface TraceRef {
  /** `traceparent` under which the execution's commands run. */
  context: string;
  /** Span id of whoever called; present where the execution has a span of its own, which stands under that one. */
  parent?: string;
}
