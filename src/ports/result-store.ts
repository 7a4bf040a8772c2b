import type { Json, JsonObject } from "../schema/words/json.ts";

/** Where payloads live that are too large to stand in an event (language document, section 8, "Storage"). */
export interface ResultStore {
  /**
   * The payload behind a reference (`noetl://execution/…`), its checksum verified.
   *
   * `reader` is the execution that reads, where it reads what its author names: it is given what its user may view. Throws
   * FlowError `REFERENCE_NOT_AVAILABLE` when the reference is unknown, expired or damaged, or not for the reader.
   */
  load(ref: string, reader?: string): Promise<Json>;
}

/** A result store that can be written to. */
export interface WritableResultStore extends ResultStore {
  /** Kind of this store as it stands in a reference: `disk`, `kv`, `s3`, … */
  readonly kind: string;
  /**
   * Stores the payload under `ref`; `json` is its JSON text, or that in UTF-8. Saving the same reference again replaces it: every attempt of a
   * command has the same references, so that a crash leaves no orphan. A store that several workers share must therefore refuse
   * payloads from a lost claim (the simulator does, and fails otherwise).
   */
  save(ref: string, json: string | Uint8Array<ArrayBuffer>, keeping?: ResultKeeping): Promise<SavedResult>;
}

/** How long a payload is kept (interface specification, ResultRef): as its author wrote it, for stores that delete by it. */
export interface ResultKeeping {
  /** `step`, `execution`, `workflow` or `permanent`. */
  scope?: string;
  /** A duration, as `1h`. */
  ttl?: string;
  /** `store.kind`: `auto` (by size, the default), or a store by its name. */
  store?: string;
  /** `gzip` or `none`; absent: as the store finds it worth. */
  compression?: string;
  /** Media type of the text; default `application/json`. */
  contentType?: string;
  /**
   * The next thing that happens to it is that its task's report is sent, and the payload may go with that. Then what is said of it here is
   * not complete: the server completes the reference.
   */
  withReport?: true;
  /** A file, no result: bytes of any type, which nothing may be sealed in. The sealing layer refuses one with a secret in it. */
  isFile?: true;
  /** The payload is to be sealed as a whole. Stores never see this flag: the sealing layer removes it. */
  sensitive?: true;
}

/** What a store says of a payload that it has now. */
export interface SavedResult {
  /** Of the text as given, in hex. */
  sha256: string;
  bytes: number;
  /** Where it is, in stores that choose by size; else their `kind`. */
  store?: string;
  /** RFC 3339; absent where the store forgets everything with its process. */
  expiresAt?: string;
  /** `gzip` where the payload was squeezed. */
  compression?: string;
  /** The location in the store, for `meta` of the reference: bucket and key, table and range. */
  meta?: JsonObject;
}
