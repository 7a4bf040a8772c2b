import { type ReactNode, useRef, useState } from "react";
import { type DataField, isMasked, moreField } from "./data-fields.ts";

/** The secret itself, field by field or as JSON. It is shown as dots until the user asks to see it. */
export function DataFields({
  fields,
  onFields,
  json,
  onJson,
}: {
  fields: readonly DataField[];
  onFields(fields: readonly DataField[]): void;
  /** Undefined: field by field. */
  json: string | undefined;
  onJson(json: string | undefined): void;
}): ReactNode {
  const [isShown, setIsShown] = useState(false);
  const next = useRef(0);
  const change = (id: string, of: Partial<DataField>) =>
    onFields(fields.map((field) => (field.id === id ? { ...field, ...of } : field)));
  const add = () => {
    next.current += 1;
    onFields([...fields, moreField(`more-${next.current}`)]);
  };
  return (
    <section className="panel stack" aria-label="Data">
      <div className="row spread">
        <h2>Data</h2>
        <div className="row">
          <button type="button" aria-pressed={isShown} onClick={() => setIsShown(!isShown)}>
            {isShown ? "Hide what is typed" : "Show what is typed"}
          </button>
          <button type="button" onClick={() => onJson(json === undefined ? "" : undefined)}>
            {json === undefined ? "Paste JSON instead" : "Field by field instead"}
          </button>
        </div>
      </div>
      <p className="quiet">
        Stored encrypted. It is sent when you press the button below, is not kept in this browser and is never shown
        again.
      </p>
      {json !== undefined ? (
        <JsonField json={json} isShown={isShown} onJson={onJson} />
      ) : (
        <>
          {fields.map((field) =>
            field.isFixed ? (
              <Fixed key={field.id} field={field} isShown={isShown} onText={(text) => change(field.id, { text })} />
            ) : (
              <More
                key={field.id}
                field={field}
                isShown={isShown}
                onChange={(of) => change(field.id, of)}
                onRemove={() => onFields(fields.filter(({ id }) => id !== field.id))}
              />
            ),
          )}
          <div>
            <button type="button" onClick={add}>
              Another field
            </button>
          </div>
        </>
      )}
    </section>
  );
}

function JsonField({
  json,
  isShown,
  onJson,
}: {
  json: string;
  isShown: boolean;
  onJson(json: string): void;
}): ReactNode {
  return (
    <div className="field">
      <label htmlFor="credential-json">All fields as one JSON object, such as a service account's file</label>
      <textarea
        id="credential-json"
        className={isShown ? "mono" : "mono dots"}
        rows={8}
        spellCheck={false}
        autoComplete="off"
        value={json}
        onChange={(event) => onJson(event.target.value)}
      />
    </div>
  );
}

function Fixed({
  field,
  isShown,
  onText,
}: {
  field: DataField;
  isShown: boolean;
  onText(text: string): void;
}): ReactNode {
  const id = `data-${field.name}`;
  const hint = [field.type === "string" ? "" : field.type, field.required ? "required" : "optional"].filter(Boolean);
  return (
    <div className="field">
      <label htmlFor={id}>
        <span className="mono">{field.name}</span> <span className="quiet">{hint.join(", ")}</span>
      </label>
      <Value id={id} field={field} isShown={isShown} onText={onText} />
    </div>
  );
}

function More({
  field,
  isShown,
  onChange,
  onRemove,
}: {
  field: DataField;
  isShown: boolean;
  onChange(of: Partial<DataField>): void;
  onRemove(): void;
}): ReactNode {
  const { id } = field;
  return (
    <fieldset className="row more-field">
      <legend className="unseen">Another field</legend>
      <label>
        Name
        <input value={field.name} onChange={(event) => onChange({ name: event.target.value })} />
      </label>
      <label htmlFor={id}>Value</label>
      <Value id={id} field={field} isShown={isShown} onText={(text) => onChange({ text })} />
      <label>
        <span className="unseen">Type</span>
        <select value={field.type} onChange={(event) => onChange({ type: event.target.value as DataField["type"] })}>
          {["string", "integer", "number", "boolean", "array", "object"].map((type) => (
            <option key={type}>{type}</option>
          ))}
        </select>
      </label>
      <button type="button" onClick={onRemove}>
        Remove
      </button>
    </fieldset>
  );
}

function Value({
  id,
  field,
  isShown,
  onText,
}: {
  id: string;
  field: DataField;
  isShown: boolean;
  onText(text: string): void;
}): ReactNode {
  const isHidden = isMasked(field) && !isShown;
  const onChange = (event: { target: { value: string } }) => onText(event.target.value);
  const common = { id, value: field.text, spellCheck: false, "aria-required": field.required, onChange };
  // Keys have lines, which an input would join.
  if (field.name.includes("key") && field.name !== "key") {
    return <textarea {...common} rows={3} className={isHidden ? "mono dots" : "mono"} autoComplete="off" />;
  }
  return <input {...common} type={isHidden ? "password" : "text"} autoComplete={isHidden ? "new-password" : "off"} />;
}
