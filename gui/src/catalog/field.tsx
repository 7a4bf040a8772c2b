import type { ReactNode } from "react";
import type { InputField } from "./inputs.ts";

/** One field of a form whose fields come from a document or a schema. */
export function Field({
  field,
  text,
  onText,
  hint = "",
  choices,
}: {
  field: InputField;
  text: string;
  onText(text: string): void;
  hint?: string;
  choices?: readonly string[] | undefined;
}): ReactNode {
  const id = `input-${field.name}`;
  if (field.kind === "boolean") {
    return (
      <label>
        <input type="checkbox" checked={text === "true"} onChange={(event) => onText(String(event.target.checked))} />
        {field.name}
        <span className="quiet">{hint}</span>
      </label>
    );
  }
  return (
    <div className="field">
      <label htmlFor={id}>
        {field.name} <span className="quiet">{hint}</span>
      </label>
      <Control id={id} field={field} text={text} onText={onText} choices={choices} />
    </div>
  );
}

function Control({
  id,
  field,
  text,
  onText,
  choices,
}: {
  id: string;
  field: InputField;
  text: string;
  onText(text: string): void;
  choices: readonly string[] | undefined;
}): ReactNode {
  if (choices !== undefined) {
    return (
      <select id={id} value={text} onChange={(event) => onText(event.target.value)}>
        <option value="">none</option>
        {choices.map((choice) => (
          <option key={choice}>{choice}</option>
        ))}
      </select>
    );
  }
  if (field.kind === "json" || text.includes("\n")) {
    return (
      <textarea
        id={id}
        className="mono"
        rows={Math.min(12, text.split("\n").length + 1)}
        value={text}
        onChange={(event) => onText(event.target.value)}
      />
    );
  }
  return (
    <input
      id={id}
      inputMode={field.kind === "number" ? "decimal" : "text"}
      value={text}
      onChange={(event) => onText(event.target.value)}
    />
  );
}
