import type * as v from "valibot";
import { executionOfRef, ResolveQuery } from "../../schema/api/results.ts";
import type { SubjectName } from "../../schema/routes/contract.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { pathId } from "./validate.ts";

/** A call's input as its handler reads it: parsed once, by the same schemas. */
export interface CallInput {
  /** A parameter of the route's path; empty if the path does not have it. */
  parameter(name: string): string;
  /** The query by a schema. Throws `FlowError` INVALID_INPUT. */
  query<S extends v.GenericSchema>(schema: S): v.InferOutput<S>;
}

/** What a call is about: a catalog path, a version of one, an execution, or what an execution has stored under a reference. */
export type Subject = { path: string } | { catalogId: string } | { executionId: string; ref?: string };

/**
 * Reads a call's subject from its validated input. Throws `FlowError` NOT_FOUND or REFERENCE_NOT_AVAILABLE for input that
 * cannot name one: without a decision there must be no answer.
 */
export type SubjectOf = (input: CallInput) => Subject;

/** How the subject of a call is read, by its name in the contract. */
export const SUBJECTS: Readonly<Record<SubjectName, SubjectOf>> = {
  path: (input) => ({ path: input.parameter("path") }),
  entry: (input) => ({ catalogId: pathId(input.parameter("catalog_id"), "catalog entry") }),
  execution: (input) => ({ executionId: pathId(input.parameter("execution_id"), "execution") }),
  result: (input) => {
    const { ref } = input.query(ResolveQuery);
    const executionId = executionOfRef(ref);
    if (executionId === undefined) {
      const why = "it is not a reference that this service gives out";
      throw new FlowError(
        "REFERENCE_NOT_AVAILABLE",
        `The result behind ${ref.slice(0, REF_SHOWN)} is not available: ${why}`,
      );
    }
    return { executionId, ref };
  },
};

/** Characters of a text that may be anything. */
const REF_SHOWN = 200;
