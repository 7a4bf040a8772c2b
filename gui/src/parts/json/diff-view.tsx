import { type ReactNode, useMemo, useState } from "react";
import "../../styles/values.css";
import { type Change, jsonDiff } from "./diff.ts";

/** Differences that are shown before the user asks for more. */
const SHOWN = 50;
/** Characters of a value that are shown in a difference. */
const TEXT_MAX = 1_500;
const TONES = { added: "good", removed: "bad", changed: "warn" } as const;
const SIGNS = { added: "+", removed: "−", changed: "≠" } as const;

/** Where one value differs from another, place by place. */
export function DiffView({ label, before, after }: { label: string; before: unknown; after: unknown }): ReactNode {
  const { changes, isCut } = useMemo(() => jsonDiff(before, after), [before, after]);
  const [shown, setShown] = useState(SHOWN);
  const count = (kind: Change["kind"]) => changes.filter((change) => change.kind === kind).length;
  return (
    <section className="stack" aria-label={label}>
      <h3 className="row">
        {label}
        <span className="quiet">
          {changes.length === 0
            ? "no difference"
            : `${count("added")} added, ${count("removed")} removed, ${count("changed")} changed${isCut ? ", and more" : ""}`}
        </span>
      </h3>
      <ul className="changes">
        {changes.slice(0, shown).map((change) => (
          <ChangeRow key={`${change.kind} ${change.path}`} change={change} />
        ))}
      </ul>
      {changes.length > shown && (
        <button type="button" onClick={() => setShown(shown + 200)}>
          {changes.length - shown} differences more
        </button>
      )}
    </section>
  );
}

function ChangeRow({ change: { kind, path, before, after } }: { change: Change }): ReactNode {
  return (
    <li className={`tone-${TONES[kind]}`}>
      <span className="path">
        <span className="status">{SIGNS[kind]}</span> {path === "" ? "the whole" : path}{" "}
        <span className="quiet">{kind}</span>
      </span>
      <div className="sides">
        {kind !== "added" && <div className="before">{shortText(before)}</div>}
        {kind !== "removed" && <div className="after">{shortText(after)}</div>}
      </div>
    </li>
  );
}

function shortText(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 1) ?? "–");
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)} …` : text;
}
