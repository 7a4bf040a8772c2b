import { type ReactNode, useState } from "react";
import { isReference } from "./reference.ts";
import { ReferenceView } from "./reference-view.tsx";

/** Children that stand beneath one line: more of them are put in groups, and groups of groups, that open one by one. */
const GROUP = 100;
/** Children of an inner node that is open from the start. */
const OPEN_MAX = 20;
/** Characters of a text that are shown before the user asks for more, and how many then. */
const TEXT_SHOWN = 2_000;
const TEXT_MORE = 100_000;

/** A JSON value as lines that open. Closed parts are not in the page, so that size costs nothing. */
export function JsonTree({ value }: { value: unknown }): ReactNode {
  return (
    <div className="tree">
      <Node value={value} depth={0} />
    </div>
  );
}

function Node({ value, depth, name }: { value: unknown; depth: number; name?: string }): ReactNode {
  const keys = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : undefined;
  const count = Array.isArray(value) ? value.length : (keys?.length ?? 0);
  const [isOpen, setIsOpen] = useState(depth === 0 || (depth === 1 && count <= OPEN_MAX));
  const key = name === undefined ? null : <span className="key">{name}: </span>;
  if (isReference(value)) {
    return (
      <div className="leaf">
        <ReferenceView reference={value} label={name ?? "Value"} />
      </div>
    );
  }
  if (count === 0) {
    return (
      <div className="leaf">
        {key}
        <Leaf value={value} />
      </div>
    );
  }
  return (
    <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        {key}
        <span className="quiet">{keys === undefined ? `[${count}]` : `{${count}}`}</span>
      </summary>
      {isOpen && (
        <div className="nest">
          <Children of={value as Container} keys={keys} from={0} to={count} depth={depth + 1} />
        </div>
      )}
    </details>
  );
}

type Container = readonly unknown[] | Readonly<Record<string, unknown>>;

interface Range {
  of: Container;
  keys: readonly string[] | undefined;
  from: number;
  to: number;
  depth: number;
}

function Children({ of, keys, from, to, depth }: Range): ReactNode {
  if (to - from <= GROUP) {
    return Array.from({ length: to - from }, (_, offset) => {
      const name = keys === undefined ? String(from + offset) : (keys[from + offset] ?? "");
      return <Node key={name} name={name} value={(of as Record<string, unknown>)[name]} depth={depth} />;
    });
  }
  let size = GROUP;
  while ((to - from) / size > GROUP) size *= GROUP;
  return Array.from({ length: Math.ceil((to - from) / size) }, (_, index) => {
    const start = from + index * size;
    return <Group key={start} of={of} keys={keys} from={start} to={Math.min(to, start + size)} depth={depth} />;
  });
}

/** A stretch of many children. The first one is open where the whole is. */
function Group(range: Range): ReactNode {
  const [isOpen, setIsOpen] = useState(range.from === 0 && range.depth <= 2);
  return (
    <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary className="quiet">
        {range.from.toLocaleString("en")} … {(range.to - 1).toLocaleString("en")}
      </summary>
      {isOpen && (
        <div className="nest">
          <Children {...range} />
        </div>
      )}
    </details>
  );
}

function Leaf({ value }: { value: unknown }): ReactNode {
  const [shown, setShown] = useState(TEXT_SHOWN);
  if (typeof value !== "string") return <span className="tone-busy atom">{JSON.stringify(value) ?? "–"}</span>;
  if (value.length <= shown) return <span className="wrap">{value === "" ? '""' : value}</span>;
  return (
    <span className="wrap">
      {value.slice(0, shown)}
      <button type="button" className="plain" onClick={() => setShown(shown + TEXT_MORE)}>
        … {(value.length - shown).toLocaleString("en")} characters more
      </button>
    </span>
  );
}
