import { type ReactNode, useState } from "react";
import { own } from "../../../../src/schema/words/json.ts";
import type { InputField } from "./inputs.ts";

/** One field of a form whose fields come from a document or a schema. */
export function Field({
  field,
  text,
  onText,
  problem,
}: {
  field: InputField;
  text: string;
  onText(text: string): void;
  problem?: string | undefined;
}): ReactNode {
  const id = `input-${field.name}`;
  const title = titleOf(field);
  const about = [field.description !== "" && `${id}-hint`, problem !== undefined && `${id}-problem`].filter(Boolean);
  return (
    <div className="field" data-invalid={problem !== undefined}>
      <label htmlFor={id}>
        {title !== undefined && <span>{title}</span>}
        <span className="mono">{field.name}</span>
        <span className="quiet">{kindText(field)}</span>
      </label>
      {field.description !== "" && (
        <p id={`${id}-hint`} className="quiet wrap hint">
          {field.description}
        </p>
      )}
      <Control
        id={id}
        field={field}
        text={text}
        onText={onText}
        about={about.join(" ")}
        isWrong={problem !== undefined}
      />
      {problem !== undefined && (
        <p id={`${id}-problem`} className="problem wrap">
          {field.name} {problem}
        </p>
      )}
    </div>
  );
}

/** What its author calls it, where that is another word. */
function titleOf({ name, schema }: InputField): string | undefined {
  const title = own(schema, "title");
  return typeof title === "string" && title.toLowerCase() !== name.toLowerCase() ? title : undefined;
}

function kindText({ kind, required, schema, secret }: InputField): string {
  const type = kind === "data" ? (schema["type"] === "array" ? "list, as YAML or JSON" : "YAML or JSON") : "";
  if (secret) return required ? "secret, required" : "secret";
  const format = own(schema, "format");
  const words = {
    text: typeof format === "string" ? format : "",
    number: "number",
    boolean: "",
    data: type,
    any: "any value, as YAML",
  }[kind];
  return [words, required ? "required" : ""].filter(Boolean).join(", ");
}

interface ControlProps {
  id: string;
  field: InputField;
  text: string;
  onText(text: string): void;
  about: string;
  isWrong: boolean;
}

function Control(props: ControlProps): ReactNode {
  const { id, field, text, onText, about, isWrong } = props;
  const common = {
    id,
    value: text,
    "aria-describedby": about === "" ? undefined : about,
    "aria-invalid": isWrong,
    "aria-required": field.required,
    onChange: (event: { target: { value: string } }) => onText(event.target.value),
  };
  if (field.choices !== undefined || field.kind === "boolean") {
    const choices = field.choices ?? [true, false];
    const isOptional = field.initial === undefined || field.initial === null;
    return (
      <select {...common}>
        {isOptional && <option value="">{field.required ? "choose" : "not set"}</option>}
        {choices.map((choice) => {
          const value = typeof choice === "string" ? choice : JSON.stringify(choice);
          return (
            <option key={value} value={value}>
              {value}
            </option>
          );
        })}
      </select>
    );
  }
  if (field.secret) return <Secret {...props} />;
  if (field.kind === "data" || text.includes("\n") || text.length > 120) {
    const rows = Math.max(2, Math.min(14, text.split("\n").length + 1));
    return <textarea {...common} className={field.kind === "text" ? "" : "mono"} rows={rows} spellCheck={false} />;
  }
  // What is no date yet, a template for one, could not be seen in a field of dates.
  const isDate = own(field.schema, "format") === "date" && /^(\d{4}-\d\d-\d\d)?$/.test(text);
  const placeholder = field.kind === "any" && field.initial === null ? "null" : undefined;
  return (
    <input
      {...common}
      type={isDate ? "date" : "text"}
      placeholder={placeholder}
      inputMode={field.kind === "number" ? "decimal" : "text"}
      autoComplete="off"
    />
  );
}

/** Dots instead of characters, until the user asks to see them. */
function Secret({ id, text, onText, about, isWrong }: ControlProps): ReactNode {
  const [isShown, setIsShown] = useState(false);
  return (
    <span className="row">
      <input
        id={id}
        type={isShown ? "text" : "password"}
        autoComplete="new-password"
        spellCheck={false}
        value={text}
        aria-describedby={about === "" ? undefined : about}
        aria-invalid={isWrong}
        onChange={(event) => onText(event.target.value)}
      />
      <button type="button" aria-pressed={isShown} onClick={() => setIsShown(!isShown)}>
        {isShown ? "Hide" : "Show"}
      </button>
    </span>
  );
}
