import { View } from "../../language/views/view.ts";
import { FlowError } from "../../schema/words/errors.ts";

/**
 * `keychain` where the engine evaluates: guards, collections, arcs, a step's `set`. Entries are resolved by workers alone, so that
 * reading one here is an error and not undefined.
 */
class NoKeychain extends View {
  override get(key: string | number): unknown {
    throw noKeychain(String(key));
  }

  override plain(): unknown {
    throw noKeychain("…");
  }
}

function noKeychain(name: string): FlowError {
  return new FlowError(
    "KEYCHAIN",
    `KEYCHAIN: Entry '${name}' can be read in a step's input and tasks only, not in guards, collections, arcs or a step's set`,
  );
}

/** The one value of `keychain` in the engine's scopes. */
export const KEYCHAIN_OUT_OF_REACH: View = new NoKeychain();
