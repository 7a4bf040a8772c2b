import { View } from "../../language/views/view.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";

/**
 * Stands for a text that was sealed with a missing key. An expression may name it, but any other use is an error, because a
 * comparison with the sealed text would take the wrong branch.
 */
class LostSecret extends View {
  readonly #keyId: string;

  constructor(keyId: string) {
    super();
    this.#keyId = keyId;
  }

  override get(): never {
    throw lost(this.#keyId);
  }

  override plain(): never {
    throw lost(this.#keyId);
  }
}

function lost(keyId: string): FlowError {
  return new FlowError(
    "ENCRYPTION",
    `A value was sealed with key '${keyId}', which this server does not have: put that key into FLOW_ENCRYPTION_KEYS, behind the current one`,
  );
}

/** The value that expressions get for a text sealed with a lost key; undefined if no key was lost. */
export function lostSecret(keyId: string | undefined): Json | undefined {
  return keyId === undefined ? undefined : (new LostSecret(keyId) as unknown as Json);
}

/** True for the error of an expression that read a lost secret. */
export function isOutOfReach(error: unknown): boolean {
  return error instanceof FlowError && error.code === "ENCRYPTION";
}
