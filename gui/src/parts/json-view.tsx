import { type ReactNode, useState } from "react";
import { CopyButton } from "./copy.tsx";

/** Children of a node that are shown before somebody asks for more. */
const SHOWN = 100;
/** Characters of a text that are shown before somebody asks for more. */
const TEXT_SHOWN = 2_000;

/** A JSON value as a tree that opens where one looks. It is only ever text: nothing in it is markup. */
export function JsonView({ value, label }: { value: unknown; label: string }): ReactNode {
  return (
    <section className="json" aria-label={label}>
      <div className="row spread">
        <h3>{label}</h3>
        <CopyButton label="Copy" text={JSON.stringify(value, null, 2) ?? ""} />
      </div>
      <Node value={value} depth={0} />
    </section>
  );
}

function Node({ value, depth, name }: { value: unknown; depth: number; name?: string }): ReactNode {
  const isTree = typeof value === "object" && value !== null;
  const [isOpen, setIsOpen] = useState(depth < 2);
  const [shown, setShown] = useState(SHOWN);
  const key = name === undefined ? null : <span className="key">{name}: </span>;
  if (!isTree) {
    return (
      <div className="leaf">
        {key}
        <Leaf value={value} />
      </div>
    );
  }
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        {key}
        <span className="quiet">{size}</span>
      </summary>
      {isOpen && (
        <div className="nest">
          {entries.slice(0, shown).map(([child, inner]) => (
            <Node key={child} name={child} value={inner} depth={depth + 1} />
          ))}
          {entries.length > shown && (
            <button type="button" className="plain" onClick={() => setShown(shown + 1_000)}>
              {entries.length - shown} more
            </button>
          )}
        </div>
      )}
    </details>
  );
}

function Leaf({ value }: { value: unknown }): ReactNode {
  const [isWhole, setIsWhole] = useState(false);
  if (typeof value !== "string") return <span className="mono tone-busy atom">{JSON.stringify(value) ?? "–"}</span>;
  const isLong = value.length > TEXT_SHOWN && !isWhole;
  return (
    <span className="mono wrap">
      {isLong ? value.slice(0, TEXT_SHOWN) : value}
      {isLong && (
        <button type="button" className="plain" onClick={() => setIsWhole(true)}>
          … all {value.length} characters
        </button>
      )}
    </span>
  );
}
