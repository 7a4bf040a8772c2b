import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { JsonObject } from "../../../../src/schema/words/json.ts";
import { completions, keyHover } from "./help.ts";

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--ink-2)", fontStyle: "italic" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--ok)" },
  { tag: [tags.labelName, tags.typeName, tags.keyword], color: "var(--wait)" },
]);

const THEME = EditorView.theme({
  "&": { fontSize: "13px", maxHeight: "70vh", color: "var(--ink)", backgroundColor: "var(--panel)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--ink-2)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--line) !important" },
  ".cm-tooltip": {
    backgroundColor: "var(--panel)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    maxWidth: "36rem",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--panel)" },
  ".cm-completionInfo": { padding: "0.3rem 0.6rem" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--ink)" },
  ".cm-panel.cm-panel-lint ul [aria-selected]": { backgroundColor: "var(--sunken)" },
  // What these are by default are pictures in the style, which the page's policy refuses.
  ".cm-lint-marker": { width: "1em", height: "1em", textAlign: "center", fontWeight: "700" },
  ".cm-lint-marker-error": { content: "normal", color: "var(--bad)" },
  ".cm-lint-marker-error::before": { content: "'✕'" },
  ".cm-lint-marker-warning": { content: "normal", color: "var(--wait)" },
  ".cm-lint-marker-warning::before": { content: "'!'" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--wait)" },
  ".cm-lintRange-active": { backgroundColor: "var(--sunken)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--wait)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", overflowWrap: "anywhere" },
  ".flow-hover": { padding: "0.3rem 0.6rem", whiteSpace: "pre-wrap" },
});

/** What every editor of documents is made of. */
export function readable(label: string): Extension[] {
  return [
    lineNumbers(),
    foldGutter(),
    drawSelection(),
    bracketMatching(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    syntaxHighlighting(COLOURS),
    yaml(),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label }),
    THEME,
    keymap.of([...searchKeymap, ...foldKeymap]),
  ];
}

/** Extensions of an editable editor. Escape, then Tab, leaves it. */
export function writable(onText: (text: string) => void): Extension[] {
  return [
    history(),
    closeBrackets(),
    lintGutter(),
    keymap.of([
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...historyKeymap,
      ...completionKeymap,
      ...lintKeymap,
      indentWithTab,
    ]),
    EditorView.domEventHandlers({ beforeinput: replaceSelection }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onText(update.state.doc.toString());
    }),
  ];
}

/**
 * Writes what is typed over a selection. Left to Chromium, the new text keeps the colour of the old one in a style attribute,
 * which the page's policy refuses with an error in the console. What an input method composes is left to it.
 */
function replaceSelection(event: InputEvent, view: EditorView): boolean {
  const { state } = view;
  const { from, to, empty } = state.selection.main;
  if (empty || event.inputType !== "insertText" || event.data === null || event.isComposing) return false;
  const text = event.data;
  const insert = () => state.update(state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
  event.preventDefault();
  const handlers = state.facet(EditorView.inputHandler);
  if (!handlers.some((handle) => handle(view, from, to, text, insert))) view.dispatch(insert());
  return true;
}

/** What is only to be read, and can be reached and searched with the keyboard all the same. */
export function readOnly(): Extension[] {
  return [
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({
      tabindex: "0",
      role: "textbox",
      "aria-readonly": "true",
      "aria-multiline": "true",
    }),
    keymap.of(defaultKeymap),
  ];
}

/** Completion and meanings of keys, by the schema of the documents. */
export function helped(schema: JsonObject): Extension[] {
  return [autocompletion({ override: [(context) => completions(schema, context)], icons: false }), keyHover(schema)];
}
