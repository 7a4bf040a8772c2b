import { nearest } from "../words/nearest.ts";
import type { Filter } from "./filter.ts";
import { itemsFor, textArgument } from "./filter.ts";
import { followed, LIST_FILTERS, pathOf, picked } from "./list-filters.ts";
import { spendItems } from "./parsing/budget.ts";
import { PREDICATES } from "./predicates.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import { TEXT_FILTERS } from "./text-filters.ts";
import { VALUE_FILTERS } from "./value-filters.ts";
import { isTrue, unwrap } from "./values.ts";

/** Filters that apply another filter or a test to every item of a list. */
const ITEM_FILTERS: Readonly<Record<string, Filter>> = {
  map: {
    parameters: ["filter"],
    named: ["attribute", "default"],
    rest: true,
    apply: (value, [filter, attribute, fallback, ...rest], run) => {
      if (attribute !== undefined) {
        const found = picked("map", value, attribute, run);
        return fallback === undefined ? found : found.map((item) => (item === undefined ? fallback : item));
      }
      const name = textArgument(run, "map", filter, "");
      const { apply } = entry("filter", FILTERS, name, run);
      const items = picked("map", value, undefined, run);
      spendItems(run.budget, items.length);
      return items.map((item) => apply(item, rest, run));
    },
  },
  select: choosing("select", true, false),
  reject: choosing("reject", false, false),
  selectattr: choosing("selectattr", true, true),
  rejectattr: choosing("rejectattr", false, true),
};

/** Every filter of the language, by name (language document, section 4.7, and the usual ones beside them). */
export const FILTERS: ReadonlyMap<string, Filter> = new Map(
  Object.entries({ ...TEXT_FILTERS, ...VALUE_FILTERS, ...LIST_FILTERS, ...ITEM_FILTERS }),
);

/** The items for which a test (none given: their truth) is `wanted`; of each item's attribute for the `…attr` forms. */
function choosing(filter: string, wanted: boolean, byAttribute: boolean): Filter {
  return {
    parameters: byAttribute ? ["attribute", "test"] : ["test"],
    required: byAttribute ? 1 : 0,
    rest: true,
    apply: (value, args, run) => {
      const path = byAttribute ? pathOf(args[0], run) : undefined;
      const [test, ...rest] = byAttribute ? args.slice(1) : args;
      const name = unwrap(test);
      const predicate =
        name === undefined ? undefined : entry("test", PREDICATES, textArgument(run, filter, name, ""), run);
      const items = picked(filter, itemsFor(run, filter, value), undefined, run);
      const kept = items.filter((item) => {
        const subject = path === undefined ? item : followed(item, path, run);
        return (predicate === undefined ? isTrue(subject, run.budget) : predicate.holds(subject, rest, run)) === wanted;
      });
      spendItems(run.budget, kept.length);
      return kept;
    },
  };
}

function entry<T>(what: string, table: ReadonlyMap<string, T>, name: string, run: Run): T {
  const found = table.get(name);
  if (found !== undefined) return found;
  const near = nearest(name, table.keys());
  const hint = near === undefined ? "" : `; did you mean "${near}"?`;
  // The name is a literal of the template in all but odd cases; elsewhere it could be a secret and is not quoted.
  throw evaluationError(run, `there is no ${what} of that name${hint}`);
}
