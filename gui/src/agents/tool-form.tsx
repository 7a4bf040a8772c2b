import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { Field } from "../catalog/field.tsx";
import { parsedInput, textOf } from "../catalog/inputs.ts";
import type { McpTool } from "./mcp-tools.ts";
import { schemaFields } from "./schema-fields.ts";

/** A field for each argument of a tool. An argument that is not needed and left empty is not sent. */
export function ToolForm({
  tool,
  isBusy,
  onCall,
}: {
  tool: McpTool;
  isBusy: boolean;
  onCall(values: Record<string, unknown>): void;
}): ReactNode {
  const fields = useMemo(() => schemaFields(tool.inputSchema), [tool.inputSchema]);
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries(
      fields.map(({ name, kind, initial }) => [name, initial === undefined ? "" : textOf(kind, initial)]),
    ),
  );
  const [problem, setProblem] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    try {
      const values: Record<string, unknown> = {};
      for (const field of fields) {
        const text = texts[field.name] ?? "";
        if (text === "" && !field.required) continue;
        values[field.name] = parsedInput(field, text);
      }
      setProblem("");
      onCall(values);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <form className="stack" onSubmit={submit}>
      {tool.description !== "" && <p className="wrap">{tool.description}</p>}
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          hint={field.description}
          choices={field.choices}
          text={texts[field.name] ?? ""}
          onText={(text) => setTexts((before) => ({ ...before, [field.name]: text }))}
        />
      ))}
      {problem !== "" && <p role="alert">{problem}</p>}
      <div>
        <button type="submit" className="main" disabled={isBusy}>
          Call {tool.name}
        </button>
      </div>
    </form>
  );
}
