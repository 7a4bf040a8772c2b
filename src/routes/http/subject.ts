import type * as v from "valibot";
import { executionOfRef } from "../../schema/api/results.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { pathId } from "./validate.ts";

/** A call's input as its handler reads it: parsed once, by the same schemas. */
export interface CallInput {
  /** A parameter of the route's path; empty where it has none of this name. */
  parameter(name: string): string;
  /** The query by a schema. Throws `FlowError` INVALID_INPUT. */
  query<S extends v.GenericSchema>(schema: S): v.InferOutput<S>;
}

/** What a call is about: a catalog path, a version of one, an execution, or what an execution has stored under a reference. */
export type Subject = { path: string } | { catalogId: string } | { executionId: string; ref?: string };

/**
 * Reads a call's subject from its validated input. Throws `FlowError` NOT_FOUND or REFERENCE_NOT_AVAILABLE for what can name
 * none: where nothing is decided, nothing is answered.
 */
export type SubjectOf = (input: CallInput) => Subject;

/** The catalog path in the route's parameter `path`. */
export const thePath: SubjectOf = (input) => ({ path: input.parameter("path") });

/** The version in the route's parameter `catalog_id`. */
export const theEntry: SubjectOf = (input) => ({ catalogId: pathId(input.parameter("catalog_id"), "catalog entry") });

/** The execution in the route's parameter `execution_id`. */
export const theExecution: SubjectOf = (input) => ({
  executionId: pathId(input.parameter("execution_id"), "execution"),
});

/** The execution whose result the query names in `ref`, as the query's schema gives it to the handler. */
export function theResult(query: v.GenericSchema<unknown, { ref: string }>): SubjectOf {
  return (input) => {
    const { ref } = input.query(query);
    const executionId = executionOfRef(ref);
    if (executionId === undefined) {
      const why = "it is not a reference that this service gives out";
      throw new FlowError(
        "REFERENCE_NOT_AVAILABLE",
        `The result behind ${ref.slice(0, REF_SHOWN)} is not available: ${why}`,
      );
    }
    return { executionId, ref };
  };
}

/** Characters of a text that may be anything. */
const REF_SHOWN = 200;
