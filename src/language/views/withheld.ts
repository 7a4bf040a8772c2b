import { View } from "./view.ts";

/** Why a value is not given: it is a secret, or these names are not known. */
export type Withholding = "secret" | readonly string[];

/** Not a failure: an expression read a value that is withheld. */
export class WithheldRead extends Error {
  readonly why: Withholding;

  constructor(why: Withholding) {
    super("A value was read that is withheld");
    this.name = "WithheldRead";
    this.why = why;
  }
}

/**
 * Stands in a scope, or anywhere within its values, for a value that is not there to be read. Naming it is nothing; whatever
 * else an expression does with it throws {@link WithheldRead}, so that nothing is made of it either.
 */
export class Withheld extends View {
  readonly #why: Withholding;

  constructor(why: Withholding) {
    super();
    this.#why = why;
  }

  override get(): never {
    throw new WithheldRead(this.#why);
  }

  override plain(): never {
    throw new WithheldRead(this.#why);
  }
}
