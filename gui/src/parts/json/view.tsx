import { type ReactNode, useMemo, useState } from "react";
import "../../styles/values.css";
import { CopyButton } from "../copy.tsx";
import { ManifestView } from "./manifest-view.tsx";
import { isManifest, isReference } from "./reference.ts";
import { ReferenceView } from "./reference-view.tsx";
import { ShownValue } from "./shown-value.ts";
import { JsonTable, tableOf } from "./table.tsx";
import { JsonText } from "./text.tsx";
import { JsonTree } from "./tree.tsx";

const MODES = { tree: "Tree", table: "Table", text: "Text" } as const;
type Mode = keyof typeof MODES;

/**
 * A JSON value: as a tree, as a table if it has rows, or as text; stored values are loaded on request. It is only ever text:
 * markup is never interpreted.
 */
export function JsonView({ value, label }: { value: unknown; label: string }): ReactNode {
  return (
    <ShownValue value={JsonView}>
      {isReference(value) ? (
        <ReferenceView reference={value} label={label} />
      ) : isManifest(value) ? (
        <ManifestView manifest={value} label={label} />
      ) : (
        <ValueView value={value} label={label} />
      )}
    </ShownValue>
  );
}

/** A value that is here. */
function ValueView({ value, label }: { value: unknown; label: string }): ReactNode {
  const table = useMemo(() => tableOf(value), [value]);
  const [chosen, setMode] = useState<Mode>("tree");
  // The value under the same label may have changed.
  const mode = chosen === "table" && table === undefined ? "tree" : chosen;
  const modes = (["tree", "table", "text"] as const).filter((name) => name !== "table" || table !== undefined);
  const isPlain = typeof value !== "object" || value === null;
  return (
    <section className="json" aria-label={label}>
      <div className="row spread">
        <h3>{label}</h3>
        <div className="row">
          {!isPlain && (
            <fieldset className="modes" aria-label={`Show ${label} as`}>
              {modes.map((name) => (
                <button key={name} type="button" aria-pressed={mode === name} onClick={() => setMode(name)}>
                  {MODES[name]}
                </button>
              ))}
            </fieldset>
          )}
          <CopyButton label="Copy" text={() => JSON.stringify(value, null, 2) ?? ""} />
        </div>
      </div>
      {mode === "table" && table !== undefined ? (
        <JsonTable table={table} label={label} />
      ) : mode === "text" ? (
        <JsonText value={value} />
      ) : (
        <JsonTree value={value} />
      )}
    </section>
  );
}
