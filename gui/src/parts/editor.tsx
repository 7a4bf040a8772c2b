import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { type ReactNode, useEffect, useRef } from "react";

/** A message at a place of the text, counted from 1. */
export interface EditorProblem {
  line: number;
  column: number;
  severity: "error" | "warning";
  message: string;
}

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--link)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.labelName, tags.typeName, tags.keyword], color: "var(--warn)" },
]);

/** YAML to read, or to write when `onChange` is given. Tab leaves it after Escape. */
export default function Editor({
  label,
  value,
  onChange,
  problems,
}: {
  label: string;
  value: string;
  onChange?: (text: string) => void;
  problems?: readonly EditorProblem[];
}): ReactNode {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const onText = useRef(onChange);
  onText.current = onChange;
  const initial = useRef(value);
  const isReadOnly = onChange === undefined;
  useEffect(() => {
    if (host.current === null) return undefined;
    // In a tree of its own it styles itself by sheets that are made in script, which the page's policy allows; elsewhere it
    // would write style elements, which the policy refuses.
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({ doc: initial.current, extensions: extensions(label, isReadOnly, onText) }),
    });
    view.current = made;
    return () => made.destroy();
  }, [label, isReadOnly]);
  useEffect(() => {
    const { current } = view;
    if (current === undefined || current.state.doc.toString() === value) return;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: value } });
  }, [value]);
  useEffect(() => {
    const { current } = view;
    if (current === undefined) return;
    current.dispatch(
      setDiagnostics(
        current.state,
        (problems ?? []).map((problem) => placed(current.state, problem)),
      ),
    );
  }, [problems]);
  return <div ref={host} className="editor" />;
}

function extensions(label: string, isReadOnly: boolean, onText: { current: ((text: string) => void) | undefined }) {
  return [
    lineNumbers(),
    foldGutter(),
    history(),
    drawSelection(),
    bracketMatching(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    syntaxHighlighting(COLOURS),
    lintGutter(),
    yaml(),
    EditorState.readOnly.of(isReadOnly),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label }),
    EditorView.theme({
      "&": { fontSize: "13px", maxHeight: "70vh", color: "var(--text)", backgroundColor: "var(--raised)" },
      ".cm-scroller": { fontFamily: "var(--mono)", overflow: "auto" },
      ".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--quiet)", border: "none" },
      ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
      ".cm-cursor": { borderLeftColor: "var(--text)" },
      ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
    }),
    keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onText.current?.(update.state.doc.toString());
    }),
  ];
}

function placed(state: EditorState, { line, column, severity, message }: EditorProblem): Diagnostic {
  const { from, to } = state.doc.line(Math.max(1, Math.min(line, state.doc.lines)));
  const start = Math.min(to, from + Math.max(0, column - 1));
  return { from: start, to: Math.max(start, to), severity, message };
}
