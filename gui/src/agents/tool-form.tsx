import { type ReactNode, useMemo } from "react";
import { type Json, type JsonObject, own } from "../../../src/schema/words/json.ts";
import { Field } from "../catalog/run/field.tsx";
import { type Texts, textOf } from "../catalog/run/input-values.ts";
import { fieldsOfSchema, type InputField } from "../catalog/run/inputs.ts";
import { useInputs } from "../catalog/run/use-inputs.ts";
import { WholeField } from "../catalog/run/whole-field.tsx";
import type { Allowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import type { McpTool } from "./mcp-tools.ts";

/** A field for each argument of a tool. An argument that is not needed and left empty is not sent. */
export function ToolForm({
  tool,
  filled,
  verb,
  may,
  isBusy,
  onCall,
}: {
  tool: McpTool;
  /** Arguments that it begins with, instead of the defaults. */
  filled: JsonObject | undefined;
  /** Of the button: Call, Read, Get. */
  verb: string;
  /** Whether its agent may be run. */
  may: Allowed;
  isBusy: boolean;
  onCall(values: JsonObject, fields: readonly InputField[]): void;
}): ReactNode {
  const fields = useMemo(() => fieldsOfSchema(tool.inputSchema), [tool.inputSchema]);
  const inputs = useInputs(fields, () => ({ texts: textsOf(fields, filled), more: moreOf(fields, filled) }), {
    isBusy,
    onValues: (values) => onCall(values, fields),
  });
  const { problems, count } = inputs;
  const isOpen = tool.inputSchema["additionalProperties"] !== false && fields.length === 0;
  return (
    <form ref={inputs.form} className="stack" onSubmit={inputs.onSubmit} noValidate>
      <About tool={tool} />
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          problem={Object.hasOwn(problems, field.name) ? problems[field.name] : undefined}
          text={inputs.texts[field.name] ?? ""}
          onText={(text) => inputs.setText(field.name, text)}
        />
      ))}
      {fields.length === 0 && !isOpen && <p className="quiet">It takes no arguments.</p>}
      {isOpen && (
        <WholeField
          id="more-arguments"
          label="Arguments"
          text={inputs.more}
          problem={problems[""]}
          onText={inputs.setMore}
        />
      )}
      {count > 0 && (
        <p role="alert" className="problem">
          Nothing was called: {count === 1 ? "one argument is" : `${count} arguments are`} wrong.
        </p>
      )}
      <div>
        <AllowedButton may={may} type="submit" className="main" disabled={isBusy}>
          {verb} {tool.name}
        </AllowedButton>
      </div>
    </form>
  );
}

function About({ tool: { name, title, description, hints } }: { tool: McpTool }): ReactNode {
  return (
    <div>
      <h3 className="wrap">{title || name}</h3>
      {description !== "" && <p className="wrap">{description}</p>}
      {hints.length > 0 && <p className="quiet">Hints from its author: {hints.join(", ")}.</p>}
    </div>
  );
}

/** Arguments of an earlier call, where there are no fields for them. */
function moreOf(fields: readonly InputField[], filled: JsonObject | undefined): string {
  return fields.length > 0 || filled === undefined || Object.keys(filled).length === 0
    ? ""
    : JSON.stringify(filled, null, 2);
}

function textsOf(fields: readonly InputField[], filled: JsonObject = {}): Texts {
  return Object.fromEntries(
    fields.map((field) => [field.name, textOf(field, (own(filled, field.name) as Json | undefined) ?? field.initial)]),
  );
}
