import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { Field } from "../catalog/run/field.tsx";
import { readInputs, type Texts, textOf } from "../catalog/run/input-values.ts";
import { fieldsOfSchema } from "../catalog/run/inputs.ts";
import { useFocusOnProblem } from "../catalog/run/use-focus-on-problem.ts";
import { WholeField } from "../catalog/run/whole-field.tsx";
import type { Allowed } from "../parts/allowed.ts";
import { AllowedButton } from "../parts/allowed-button.tsx";
import { readMap } from "../parts/read-yaml.ts";
import type { McpTool } from "./mcp-tools.ts";

/** A field for each argument of a tool. An argument that is not needed and left empty is not sent. */
export function ToolForm({
  tool,
  may,
  isBusy,
  onCall,
}: {
  tool: McpTool;
  /** Whether its agent may be run. */
  may: Allowed;
  isBusy: boolean;
  onCall(values: JsonObject): void;
}): ReactNode {
  const fields = useMemo(() => fieldsOfSchema(tool.inputSchema), [tool.inputSchema]);
  const [texts, setTexts] = useState<Texts>(() =>
    Object.fromEntries(fields.map((field) => [field.name, textOf(field, field.initial)])),
  );
  const [more, setMore] = useState("");
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const form = useFocusOnProblem(problems);
  const isOpen = tool.inputSchema["additionalProperties"] !== false && fields.length === 0;
  const submit = async () => {
    const { values, problems: found } = await readInputs(fields, texts);
    const others = await readMap(more).catch((error: Error) => error);
    const all = others instanceof Error ? { ...found, "": others.message } : found;
    setProblems(all);
    if (others instanceof Error || Object.keys(all).length > 0) return;
    onCall({ ...others, ...values });
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!isBusy) void submit();
  };
  const count = Object.keys(problems).length;
  return (
    <form ref={form} className="stack" onSubmit={onSubmit} noValidate>
      <div>
        <h3 className="wrap">{tool.title || tool.name}</h3>
        {tool.description !== "" && <p className="wrap">{tool.description}</p>}
        {tool.hints.length > 0 && <p className="quiet">Hints from its author: {tool.hints.join(", ")}.</p>}
      </div>
      {fields.map((field) => (
        <Field
          key={field.name}
          field={field}
          problem={Object.hasOwn(problems, field.name) ? problems[field.name] : undefined}
          text={texts[field.name] ?? ""}
          onText={(text) => setTexts((before) => ({ ...before, [field.name]: text }))}
        />
      ))}
      {fields.length === 0 && !isOpen && <p className="quiet">It takes no arguments.</p>}
      {isOpen && (
        <WholeField id="more-arguments" label="Arguments" text={more} problem={problems[""]} onText={setMore} />
      )}
      {count > 0 && (
        <p role="alert" className="problem">
          Nothing was called: {count === 1 ? "one argument is" : `${count} arguments are`} wrong.
        </p>
      )}
      <div>
        <AllowedButton may={may} type="submit" className="main" disabled={isBusy}>
          Call {tool.name}
        </AllowedButton>
      </div>
    </form>
  );
}
