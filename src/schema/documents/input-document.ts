import * as v from "valibot";
import { anyMap, anything, flag, key, map, text } from "./document-forms.ts";

/*
 * Declared inputs as authors write them: entries of `inputs` in a playbook. Their words are those of JSON Schema, with `required` and
 * `secret` of the input beside them.
 */

const TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"] as const;
const type = v.picklist(TYPES);
const schemas = v.array(anything);
const number = v.number();

/** One entry of `inputs`. */
export const InputEntry = map({
  type: key(v.union([type, v.array(type)]), "Type of the value, or several."),
  title: key(text, "Short name that people read."),
  description: key(text, "What it is for."),
  required: key(
    v.union([flag, v.array(text)]),
    "A start without it is refused. A list is JSON Schema's: the fields that a map must have.",
  ),
  secret: key(flag, "Sealed in events and hidden from people; with `type: string`."),
  default: key(anything, "Value when it is left out; may be a template, as in `workload`."),
  enum: key(schemas, "The values that it can have."),
  const: key(anything, "The one value that it can have."),
  format: key(text, "What the text is: `date`, `date-time`, `time`, `email`, `uri`, `uuid`, `ipv4` and the like."),
  examples: key(schemas, "Values that show what is meant."),
  minimum: key(number, "Smallest number."),
  maximum: key(number, "Largest number."),
  exclusiveMinimum: key(number, "The number must be more."),
  exclusiveMaximum: key(number, "The number must be less."),
  multipleOf: key(number, "The number is a multiple of it."),
  minLength: key(number, "Fewest characters."),
  maxLength: key(number, "Most characters."),
  pattern: key(text, "Regular expression that the text matches."),
  items: key(anything, "Schema of each item of a list."),
  prefixItems: key(schemas, "Schemas of the first items of a list."),
  contains: key(anything, "Schema that an item of the list has."),
  minItems: key(number, "Fewest items."),
  maxItems: key(number, "Most items."),
  uniqueItems: key(flag, "No item is there twice."),
  properties: key(anyMap, "Schemas of the fields of a map."),
  patternProperties: key(anyMap, "Schemas of fields by a pattern of their names."),
  additionalProperties: key(anything, "Schema of other fields; false: there are none."),
  propertyNames: key(anything, "Schema of the names of fields."),
  minProperties: key(number, "Fewest fields."),
  maxProperties: key(number, "Most fields."),
  dependentRequired: key(anyMap, "Fields that others need."),
  anyOf: key(schemas, "At least one of these schemas holds."),
  oneOf: key(schemas, "Exactly one of these schemas holds."),
  allOf: key(schemas, "All of these schemas hold."),
  not: key(anything, "This schema does not hold."),
  if: key(anything, "Schema that decides between `then` and `else`."),
  then: key(anything, "Holds where `if` does."),
  else: key(anything, "Holds where `if` does not."),
});
