import { compileTemplate } from "../../language/template/template.ts";
import type { Json } from "../../schema/words/json.ts";

/** `value` as plain JSON: views, wherever they stand, become what is behind them. Throws `ReferenceNeeded`. */
export function toPlainJson(value: unknown): Json {
  return VALUE.render({ lookup: () => value, names: () => ["value"] });
}

const VALUE = compileTemplate("{{ value }}");
