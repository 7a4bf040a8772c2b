import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { type ReactNode, type RefObject, useEffect, useRef } from "react";
import type { JsonObject } from "../../../../src/schema/words/json.ts";
import { helped, readable, readOnly, writable } from "./setup.ts";

/** A message at a place of the text, counted from 1. */
export interface EditorProblem {
  line: number;
  column: number;
  severity: "error" | "warning";
  message: string;
}

/** A place that the editor is to go to. A new object goes there again. */
export interface EditorTarget {
  line: number;
  column: number;
}

/** YAML to read, or to write when `onChange` is given. Tab indents; Escape, then Tab, leaves it. */
export default function Editor({
  label,
  value,
  onChange,
  problems,
  schema,
  goTo,
  onCursor,
}: {
  label: string;
  /** What is read, or what writing begins with: the text of an editor that is written in is its own. */
  value: string;
  onChange?: (text: string) => void;
  problems?: readonly EditorProblem[];
  /** JSON Schema of the documents, for completion and the meanings of keys. */
  schema?: JsonObject | undefined;
  goTo?: EditorTarget | undefined;
  /** Called with the place of the cursor when it has moved, UTF-16 units from the start. */
  onCursor?: (offset: number) => void;
}): ReactNode {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const help = useRef(new Compartment());
  const onText = useRef(onChange);
  onText.current = onChange;
  const onMove = useRef(onCursor);
  onMove.current = onCursor;
  const initial = useRef(value);
  const isReadOnly = onChange === undefined;
  useEffect(() => {
    if (host.current === null) return undefined;
    // In a shadow tree it uses constructed style sheets, which the page's policy allows; elsewhere it would write style
    // elements, which the policy refuses.
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    const extensions = [
      ...readable(label),
      ...(isReadOnly ? readOnly() : writable((text) => onText.current?.(text))),
      help.current.of([]),
      EditorView.updateListener.of(({ selectionSet, docChanged, state }) => {
        if (selectionSet || docChanged) onMove.current?.(state.selection.main.head);
      }),
    ];
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({ doc: initial.current, extensions }),
    });
    view.current = made;
    return () => made.destroy();
  }, [label, isReadOnly]);
  useEffect(() => {
    view.current?.dispatch({ effects: help.current.reconfigure(schema === undefined ? [] : helped(schema)) });
  }, [schema]);
  useEffect(() => {
    initial.current = value;
    const { current } = view;
    // What a user writes comes back as a value some time later, when more may be written: that would be lost.
    if (!isReadOnly || current === undefined || current.state.doc.toString() === value) return;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: value } });
  }, [value, isReadOnly]);
  useProblems(view, isReadOnly ? undefined : (problems ?? NO_PROBLEMS));
  useTarget(view, goTo);
  return (
    <>
      <div ref={host} className="editor" />
      {!isReadOnly && <WritingKeys />}
    </>
  );
}

function WritingKeys(): ReactNode {
  return (
    <p className="quiet editor-hint">
      <kbd>Ctrl Space</kbd> offers keys, <kbd>F8</kbd> goes to the next message, <kbd>Esc</kbd> then <kbd>Tab</kbd>{" "}
      leaves the editor.
    </p>
  );
}

const NO_PROBLEMS: readonly EditorProblem[] = [];

type View = Readonly<RefObject<EditorView | undefined>>;

function useProblems(view: View, problems: readonly EditorProblem[] | undefined): void {
  useEffect(() => {
    const { current } = view;
    if (current === undefined || problems === undefined) return;
    const placed = problems.map((problem) => diagnosticOf(current.state, problem));
    current.dispatch(setDiagnostics(current.state, placed));
  }, [view, problems]);
}

function useTarget(view: View, goTo: EditorTarget | undefined): void {
  useEffect(() => {
    const { current } = view;
    if (current === undefined || goTo === undefined) return;
    const anchor = offsetOf(current.state, goTo);
    current.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    current.focus();
  }, [view, goTo]);
}

function offsetOf(state: EditorState, { line, column }: EditorTarget): number {
  const { from, to } = state.doc.line(Math.max(1, Math.min(line, state.doc.lines)));
  return Math.min(to, from + Math.max(0, column - 1));
}

function diagnosticOf(state: EditorState, problem: EditorProblem): Diagnostic {
  const from = offsetOf(state, problem);
  const { severity, message } = problem;
  const rest = state.doc.sliceString(from, state.doc.lineAt(from).to);
  // The word that it is about, not the rest of the line: one sees which of several is meant.
  const word = /^["']?[^\s:,{}[\]]+/.exec(rest)?.[0].length ?? rest.length;
  return { from, to: from + word, severity, message };
}
