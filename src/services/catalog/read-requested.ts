import { type DocumentRead, readDocument } from "./read-document.ts";
import { type RegisteredRead, readRegistered } from "./read-registered.ts";

/** A text to be read: a document that is to be registered or, where it has a name in messages, a playbook of the catalog. */
export interface DocumentRequest {
  content: string;
  file?: string;
}

/** What the thread does with a text. */
export function readRequested({ content, file }: DocumentRequest): DocumentRead | RegisteredRead {
  return file === undefined ? readDocument(content) : readRegistered(content, file);
}
