import { type CompletionContext, type CompletionResult, startCompletion } from "@codemirror/autocomplete";
import { type EditorView, hoverTooltip, type Tooltip } from "@codemirror/view";
import type { JsonObject } from "../../../../src/schema/words/json.ts";
import { describeAt, keysAt, valuesAt } from "./schema-lookup.ts";
import { placeAt } from "./yaml-place.ts";

/** What is offered while one writes: keys of the map with what they mean, and values where they are few. */
export function completions(schema: JsonObject, context: CompletionContext): CompletionResult | null {
  const place = placeAt(context.state.doc.toString(), context.pos);
  if (place === undefined) return null;
  const from = context.pos - place.word.replace(/^["']/, "").length;
  if (place.at === "value") {
    const values = place.key === undefined ? [] : valuesAt(schema, place, place.key);
    return values.length === 0 || place.word.includes(" ")
      ? null
      : { from, options: values.map((label) => ({ label, type: "constant" })), validFor: /^[\w.-]*$/ };
  }
  if (place.word === "" && !context.explicit) return null;
  const options = keysAt(schema, place)
    .filter(({ name }) => !place.siblings.has(name))
    .map(({ name, description }) => ({ label: name, info: description, type: "property", apply: withColon(name) }));
  return options.length === 0 ? null : { from, options, validFor: /^[\w.-]*$/ };
}

/** Writes the key with its colon, and goes on to its value. */
function withColon(name: string) {
  return (view: EditorView, _completion: unknown, from: number, to: number) => {
    const hasColon = /^\s*:/.test(view.state.doc.sliceString(to, to + 20));
    const insert = hasColon ? name : `${name}: `;
    view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length } });
    if (!hasColon) startCompletion(view);
  };
}

/** Says what the key under the pointer means. */
export function keyHover(schema: JsonObject) {
  return hoverTooltip((view, position): Tooltip | null => {
    const line = view.state.doc.lineAt(position);
    const [start, end] = wordAround(line.text, position - line.from);
    const word = line.text.slice(start, end);
    if (word === "" || !/^["']?\s*:/.test(line.text.slice(end))) return null;
    const place = placeAt(view.state.doc.toString(), line.from + start);
    const description = place?.at === "key" ? describeAt(schema, place, word) : "";
    if (description === "") return null;
    return {
      pos: line.from + start,
      end: line.from + end,
      above: true,
      create() {
        const dom = document.createElement("div");
        dom.className = "flow-hover";
        dom.textContent = `${word}: ${description}`;
        return { dom };
      },
    };
  });
}

function wordAround(text: string, at: number): [start: number, end: number] {
  let [start, end] = [at, at];
  while (start > 0 && /[\w.-]/.test(text[start - 1] ?? "")) start -= 1;
  while (end < text.length && /[\w.-]/.test(text[end] ?? "")) end += 1;
  return [start, end];
}
