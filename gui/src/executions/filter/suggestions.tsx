import type { ReactNode } from "react";

/** A word of the query language, and what it means. */
interface Suggestion {
  word: string;
  about: string;
}

/** Each word with a value that shows its form. A word that ends with a colon waits for a value. */
const WORDS: readonly Suggestion[] = [
  { word: "status:failed", about: "in this state; several with commas" },
  { word: "status:running", about: "in this state" },
  { word: "path:etl/*", about: "of these playbooks" },
  { word: "label.team:data", about: "with this label" },
  { word: "error:HTTP_429", about: "failed with this code" },
  { word: "step:load", about: "failed at this step, or works in it" },
  { word: "input.day:2026-01-31", about: "with this input" },
  { word: "version:3", about: "of this version" },
  { word: "started:<1h", about: "started within the last hour" },
  { word: "started:>1d", about: "started longer ago" },
  { word: "by:trigger", about: "started by a trigger, user, rerun, bulk, mcp" },
  { word: "is:root", about: "called by no other execution" },
];

/** Words that continue what is being typed last; all of them at the beginning of a word. */
export function suggestionsFor(query: string): readonly Suggestion[] {
  const last = /\S*$/.exec(query)?.[0] ?? "";
  // A value is being typed: nothing is known of it.
  if (/:./.test(last)) return [];
  return WORDS.filter(({ word }) => word.startsWith(last.toLowerCase()));
}

/** The query with the word in place of what is being typed last. */
export function withSuggestion(query: string, word: string): string {
  return query.replace(/\S*$/, "") + word;
}

/** The words that are offered, beneath the field. */
export function Suggestions({
  offered,
  at,
  onChoose,
}: {
  offered: readonly Suggestion[];
  at: number;
  onChoose(word: string): void;
}): ReactNode {
  return (
    <div id="query-suggestions" role="listbox" aria-label="Words of a search" className="suggestions">
      {offered.map(({ word, about }, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field
        <div
          key={word}
          id={`suggestion-${index}`}
          role="option"
          aria-selected={index === at}
          // Before the field loses its focus.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onChoose(word)}
        >
          <code>{word}</code>
          <span className="quiet">{about}</span>
        </div>
      ))}
    </div>
  );
}
