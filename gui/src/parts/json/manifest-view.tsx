import { type ReactNode, use, useState } from "react";
import { bytesText, type Manifest } from "./reference.ts";
import { ReferenceView } from "./reference-view.tsx";
import { ShownValue } from "./shown-value.ts";

/** Parts that are listed before the user asks for more. */
const SHOWN = 20;

/** What a strategy does, where its name alone does not say it. */
const JOINED: Readonly<Record<string, string>> = { fields: "whose fields are joined, later ones win" };

function PartView({ part, index }: { part: NonNullable<Manifest["parts"]>[number]; index: number }): ReactNode {
  const Shown = use(ShownValue);
  const count = part.count === undefined ? "" : `, ${part.count} results`;
  const label = part.task ?? `Part ${index + 1}${count}`;
  if (part.ref === undefined) return <Shown value={part.value} label={label} />;
  const meta = part.bytes === undefined ? {} : { meta: { bytes: part.bytes } };
  return <ReferenceView reference={{ kind: "result_ref", ref: part.ref, ...meta }} label={label} />;
}

/** Results in parts, each of which is loaded on request. */
export function ManifestView({ manifest, label }: { manifest: Manifest; label: string }): ReactNode {
  const [shown, setShown] = useState(SHOWN);
  const { parts, ref, total_parts: count = parts?.length ?? 0, total_bytes: bytes } = manifest;
  if (parts === undefined) {
    // A long list of parts is kept elsewhere itself.
    return <ReferenceView reference={{ kind: "result_ref", ref: ref ?? "" }} label={`${label}: list of its parts`} />;
  }
  return (
    <section className="json" aria-label={label}>
      <h3>{label}</h3>
      <p className="quiet">
        {count.toLocaleString("en")} parts{bytes !== undefined && `, ${bytesText(bytes)} together`}
        {manifest.strategy !== undefined && `, ${JOINED[manifest.strategy] ?? `joined by ${manifest.strategy}`}`}
      </p>
      <div className="stack">
        {parts.slice(0, shown).map((part, index) => (
          <PartView key={part.ref ?? part.task} part={part} index={index} />
        ))}
      </div>
      {parts.length > shown && (
        <button type="button" onClick={() => setShown(shown + 100)}>
          {(parts.length - shown).toLocaleString("en")} parts more
        </button>
      )}
    </section>
  );
}
