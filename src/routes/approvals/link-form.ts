import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { type Html, html } from "./html.ts";

/* The fields of an approval's form on the page of a link: what a browser shows and sends without a script. */

/** What stands before the name of a field of the form, so that none is taken for another one of the page. */
const PREFIX = "data.";
/** The whole of a form that has no fields. */
const WHOLE = "data";
/** Texts that may be longer get several lines. */
const LINE_MAX = 200;

/** The fields of a form, with what was sent before. */
export function formFields(form: JsonObject, given: URLSearchParams | undefined): Html {
  const fields = fieldsOf(form);
  if (fields === undefined) {
    return html`<label>Data, as JSON<textarea name="${WHOLE}" rows="6">${given?.get(WHOLE) ?? ""}</textarea></label>`;
  }
  return fields
    .map((field) => fieldHtml(field, given?.get(`${PREFIX}${field.name}`) ?? undefined))
    .reduce((all, one) => html`${all}${one}`, html``);
}

/**
 * The data that a browser has sent; undefined where nothing was filled in. What cannot be what the form asks for stays text: the form's
 * check says where it is wrong.
 */
export function formData(form: JsonObject, given: URLSearchParams): Json | undefined {
  const fields = fieldsOf(form);
  if (fields === undefined) {
    const text = given.get(WHOLE)?.trim() ?? "";
    return text === "" ? undefined : parsed(text);
  }
  const data: JsonObject = {};
  for (const { name, schema } of fields) {
    const text = given.get(`${PREFIX}${name}`) ?? "";
    if (text.trim() !== "") setOwn(data, name, sentValue(text, schema));
  }
  return Object.keys(data).length === 0 ? undefined : data;
}

interface Field {
  name: string;
  schema: JsonObject;
  isRequired: boolean;
}

/** Undefined: it has none that could be shown. */
function fieldsOf(form: JsonObject): Field[] | undefined {
  const [properties, required] = [own(form, "properties"), own(form, "required")];
  if (!isJsonObject(properties) || Object.keys(properties).length === 0) return undefined;
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    schema: isJsonObject(schema) ? schema : {},
    isRequired: Array.isArray(required) && required.includes(name),
  }));
}

function fieldHtml({ name, schema, isRequired }: Field, value: string | undefined): Html {
  const [title, hint, preset] = [own(schema, "title"), own(schema, "description"), own(schema, "default")];
  const shown = value ?? (preset === undefined ? "" : textOf(preset as Json, schema));
  const label = typeof title === "string" && title !== "" ? title : name;
  const optional = isRequired ? "" : " (optional)";
  const about = typeof hint === "string" ? html`<small>${hint}</small>` : html``;
  return html`<label>${label}${optional}${about}${inputHtml(`${PREFIX}${name}`, schema, shown)}</label>`;
}

function inputHtml(name: string, schema: JsonObject, value: string): Html {
  const type = own(schema, "type");
  const choices = choicesOf(schema);
  if (choices !== undefined) {
    const options = choices.map((choice) => {
      const text = textOf(choice, schema);
      return text === value ? html`<option selected>${text}</option>` : html`<option>${text}</option>`;
    });
    return html`<select name="${name}"><option value=""></option>${options}</select>`;
  }
  if (type === "string" && own(schema, "format") === "date")
    return html`<input type="date" name="${name}" value="${value}">`;
  if (type === "number" || type === "integer")
    return html`<input name="${name}" value="${value}" inputmode="decimal" autocomplete="off">`;
  const max = own(schema, "maxLength");
  if (type === "string" && !(typeof max === "number" && max > LINE_MAX))
    return html`<input name="${name}" value="${value}" autocomplete="off">`;
  const hint = type === "string" ? html`` : html`<small>As JSON</small>`;
  return html`${hint}<textarea name="${name}" rows="4">${value}</textarea>`;
}

function choicesOf(schema: JsonObject): readonly Json[] | undefined {
  const choices = own(schema, "enum");
  if (Array.isArray(choices)) return choices;
  return own(schema, "type") === "boolean" ? [true, false] : undefined;
}

/** A value as its field shows it. */
function textOf(value: Json, schema: JsonObject): string {
  if (own(schema, "type") === "boolean" && typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function sentValue(text: string, schema: JsonObject): Json {
  const choice = choicesOf(schema)?.find((one) => textOf(one, schema) === text);
  if (choice !== undefined) return choice;
  const type = own(schema, "type");
  // A browser ends lines as forms do.
  if (type === "string") return text.replaceAll("\r\n", "\n");
  if (type === "number" || type === "integer") return Number.isFinite(Number(text)) ? Number(text) : text;
  return parsed(text);
}

/** JSON where it is that, else the text. */
function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
