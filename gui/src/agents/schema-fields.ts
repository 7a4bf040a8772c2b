import type { InputField } from "../catalog/inputs.ts";

/** A field of a tool's form. */
export interface ToolField extends InputField {
  required: boolean;
  description: string;
  /** The values that it can have, where there are few. */
  choices: readonly string[] | undefined;
}

/** Fields for the properties of a JSON Schema of an object. What is no plain value is written as JSON. */
export function schemaFields(schema: Readonly<Record<string, unknown>>): ToolField[] {
  const properties = schema["properties"];
  if (typeof properties !== "object" || properties === null) return [];
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(properties as Record<string, unknown>).map(([name, property]) => {
    const { type, description, default: initial, enum: choices } = (property ?? {}) as Record<string, unknown>;
    return {
      name,
      kind:
        type === "string"
          ? "text"
          : type === "number" || type === "integer"
            ? "number"
            : type === "boolean"
              ? "boolean"
              : "json",
      initial,
      required: required.includes(name),
      description: typeof description === "string" ? description : "",
      choices: Array.isArray(choices) && choices.every((one) => typeof one === "string") ? choices : undefined,
    };
  });
}
