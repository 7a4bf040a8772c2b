import { after } from "node:test";
import { createDocuments } from "../../../src/services/catalog/documents.ts";

/**
 * Reads the documents of all tests of this process: each thread of it takes half a second of processor time to load, and 20 MB. It is closed
 * when the process's tests are over.
 */
export const documents = createDocuments();

// Here and not at the first use: a hook that is added within a test file belongs to that file.
after(() => documents.close());
