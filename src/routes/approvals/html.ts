/** Text that is HTML already. Everything else is escaped where it is put in. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | number | Html | readonly Html[];

/** A piece of a page: what is put in is text, and shown as text, unless it is a piece of its own. */
export function html(pieces: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(pieces.reduce((all, piece, index) => `${all}${shown(parts[index - 1] ?? "")}${piece}`));
}

function shown(part: Part): string {
  if (part instanceof Html) return part.text;
  if (typeof part === "object") return part.map(({ text }) => text).join("");
  return String(part).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A piece that this program has written itself, as it stands: never with anything of a document or a caller in it. */
export function raw(text: string): Html {
  return new Html(text);
}
