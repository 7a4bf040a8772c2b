import { type ComponentProps, lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import "../../styles/source.css";
import type { EditorTarget } from "../../parts/editor/editor.tsx";
import { useIsNarrow } from "../../parts/use-narrow.ts";
import { type SourceStep, stepAt } from "./read-source.ts";
import type { SourceState } from "./use-source.ts";

const Editor = lazy(() => import("../../parts/editor/editor.tsx"));
const PlaybookGraph = lazy(() =>
  import("../../execution/graph/graph.tsx").then(({ PlaybookGraph: it }) => ({ default: it })),
);

/**
 * A document with its graph beside it: the step that the cursor is in is marked, and a step that is chosen moves the cursor. On narrow
 * pages one of both is shown.
 */
export function SourceView({
  state,
  text,
  goTo,
  onStep,
  ...editor
}: {
  /** What was read of the text. */
  state: SourceState;
  text: string;
  /** The cursor is in another step. */
  onStep?: ((step: string | undefined) => void) | undefined;
} & Omit<ComponentProps<typeof Editor>, "value" | "label" | "onCursor">): ReactNode {
  const { source, fault } = state;
  const isNarrow = useIsNarrow(1100);
  const [view, setView] = useState<"text" | "graph">("text");
  const [target, setTarget] = useState<EditorTarget>();
  const [step, setOffset] = useCursorStep(source?.steps);
  useEffect(() => setTarget(goTo), [goTo]);
  useEffect(() => onStep?.(step), [step, onStep]);
  const isDrawn =
    source === undefined ? /^["']?workflow["']?\s*:/m.test(text) : Array.isArray(source.payload["workflow"]);
  const isText = !isDrawn || !isNarrow || view === "text";
  const choose = (name: string) => {
    const found = source?.steps.find((one) => one.name === name);
    if (found === undefined) return;
    setView("text");
    setTarget({ line: found.line, column: found.column });
  };
  return (
    <div className="stack tight">
      {isDrawn && isNarrow && <Switch view={view} onView={setView} />}
      <div className="source" data-beside={isDrawn && !isNarrow}>
        <div className="source-text" hidden={!isText}>
          <Suspense fallback={<p className="quiet">Loading the editor …</p>}>
            <Editor {...editor} label="Document" value={text} goTo={target} onCursor={setOffset} />
          </Suspense>
        </div>
        {isDrawn && (!isNarrow || view === "graph") && (
          <div className="source-graph" data-old={fault !== undefined}>
            {fault !== undefined && (
              <p role="status" className="note tone-warn">
                {source === undefined ? "There is no graph" : "The graph is of the text before"}: line {fault.line}{" "}
                cannot be read. {fault.why}
              </p>
            )}
            <Suspense fallback={<p className="quiet">Loading the graph …</p>}>
              {source !== undefined && <PlaybookGraph payload={source.payload} beside={{ step, onStep: choose }} />}
            </Suspense>
          </div>
        )}
      </div>
    </div>
  );
}

function Switch({ view, onView }: { view: "text" | "graph"; onView(view: "text" | "graph"): void }): ReactNode {
  return (
    <fieldset className="segments source-switch">
      <legend className="unseen">Shown</legend>
      {(["text", "graph"] as const).map((one) => (
        <button key={one} type="button" aria-pressed={view === one} onClick={() => onView(one)}>
          {one === "text" ? "Text" : "Graph"}
        </button>
      ))}
    </fieldset>
  );
}

/** The step that the cursor is in, found again when the cursor moves and when the text was read anew. */
function useCursorStep(steps: readonly SourceStep[] | undefined) {
  const offset = useRef<number>(undefined);
  const [step, setStep] = useState<string>();
  const known = useRef(steps);
  known.current = steps;
  const find = () => setStep(offset.current === undefined ? undefined : stepAt(known.current ?? [], offset.current));
  // biome-ignore lint/correctness/useExhaustiveDependencies: other steps are another answer
  useEffect(find, [steps]);
  const setOffset = useRef((at: number) => {
    offset.current = at;
    find();
  });
  return [step, setOffset.current] as const;
}
