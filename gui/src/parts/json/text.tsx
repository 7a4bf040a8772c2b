import { type ReactNode, useMemo, useState } from "react";

/** Characters that are shown before the user asks for more, and how many then: a browser cannot lay out more at once. */
const SHOWN = 50_000;
const MORE = 250_000;

/** A value as its JSON; a text as it is. */
export function JsonText({ value }: { value: unknown }): ReactNode {
  const text = useMemo(() => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "")), [value]);
  const [shown, setShown] = useState(SHOWN);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section className="raw" tabIndex={0} aria-label="Text">
      <pre>{text.length > shown ? text.slice(0, shown) : text}</pre>
      {text.length > shown && (
        <button type="button" className="plain" onClick={() => setShown(shown + MORE)}>
          {(text.length - shown).toLocaleString("en")} characters more
        </button>
      )}
    </section>
  );
}
