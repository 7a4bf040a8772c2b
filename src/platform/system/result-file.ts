import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** A step of writing a result's file. Throws `FlowError` NOT_STORED where the folder or the disk does not let it. */
export async function writingFile<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    const hint = "Make room in the folder of results (FLOW_HOME), or see that it can be written to";
    throw new FlowError("NOT_STORED", `The result could not be written to a file: ${messageOf(cause)}. ${hint}`, {
      cause,
    });
  }
}
