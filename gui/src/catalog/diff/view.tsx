import { type ReactNode, useMemo, useState } from "react";
import { type DiffLine, lineDiff } from "./line-diff.ts";

/** Lines that are the same and shown around what is not. */
const AROUND = 3;
/** Lines that are shown at a time: a document may have a hundred thousand. */
const SHOWN = 2_000;

/** How one text differs from another, line by line; long stretches that are the same are folded. */
export function DiffView({ before, after, label }: { before: string; after: string; label: string }): ReactNode {
  const lines = useMemo(() => lineDiff(before, after), [before, after]);
  const [isWhole, setIsWhole] = useState(false);
  const [shown, setShown] = useState(SHOWN);
  const parts = useMemo(() => folded(lines, isWhole), [lines, isWhole]);
  const count = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  const [added, removed] = [count("added"), count("removed")];
  if (added + removed === 0) return <p>The texts are the same.</p>;
  return (
    <div className="stack tight">
      <p className="row">
        <span className="status tone-good">+ {lineCount(added)}</span>
        <span className="status tone-bad">− {lineCount(removed)}</span>
        <label>
          <input type="checkbox" checked={isWhole} onChange={(event) => setIsWhole(event.target.checked)} />
          whole text
        </label>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and must do so by keys too */}
      <section className="diff" aria-label={label} tabIndex={0}>
        {parts.slice(0, shown).map((part) =>
          part.is === "fold" ? (
            <div key={part.key} className="fold">
              {lineCount(part.lines)} the same
            </div>
          ) : (
            <div key={part.key} className={part.line.kind}>
              <span className="sign">{SIGNS[part.line.kind]}</span>
              {part.line.text}
            </div>
          ),
        )}
      </section>
      {parts.length > shown && (
        <button type="button" onClick={() => setShown(shown + SHOWN)}>
          {parts.length - shown} more lines
        </button>
      )}
    </div>
  );
}

const SIGNS = { added: "+ ", removed: "− ", same: "  " };

function lineCount(count: number): string {
  return count === 1 ? "1 line" : `${count} lines`;
}

type Part = { is: "line"; key: number; line: DiffLine } | { is: "fold"; key: number; lines: number };

/** The lines, with a fold in place of each stretch that is far from any change. */
function folded(lines: readonly DiffLine[], isWhole: boolean): Part[] {
  const isNear = new Uint8Array(lines.length);
  for (const [index, { kind }] of lines.entries()) {
    if (kind !== "same") isNear.fill(1, Math.max(0, index - AROUND), index + AROUND + 1);
  }
  const parts: Part[] = [];
  for (const [key, line] of lines.entries()) {
    const last = parts.at(-1);
    if (isWhole || isNear[key] === 1) parts.push({ is: "line", key, line });
    else if (last?.is === "fold") last.lines += 1;
    else parts.push({ is: "fold", key, lines: 1 });
  }
  return parts;
}
