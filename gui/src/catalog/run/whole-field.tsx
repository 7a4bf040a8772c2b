import type { ReactNode } from "react";

/** A value that no fields describe, written as YAML or JSON. */
export function WholeField({
  id,
  label,
  text,
  problem,
  onText,
}: {
  id: string;
  label: string;
  text: string;
  problem: string | undefined;
  onText(text: string): void;
}): ReactNode {
  return (
    <div className="field" data-invalid={problem !== undefined}>
      <label htmlFor={id}>{label}, as YAML or JSON</label>
      <textarea
        id={id}
        className="mono"
        rows={3}
        spellCheck={false}
        value={text}
        aria-invalid={problem !== undefined}
        onChange={(event) => onText(event.target.value)}
      />
      {problem !== undefined && <p className="problem wrap">It {problem}</p>}
    </div>
  );
}
