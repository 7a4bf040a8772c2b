import type { Filter } from "./filter.ts";
import { countArgument, flagArgument, textArgument, textFor } from "./filter.ts";
import { spendItems, spendSearch, spendSteps, spendText } from "./parsing/budget.ts";
import { textOf } from "./plain.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import { characters, isMap, keysOf, unwrap } from "./values.ts";

/** Filters from text to text (or to a list of texts). Numbers, booleans and null are taken by their text. */
export const TEXT_FILTERS: Readonly<Record<string, Filter>> = {
  lower: changing("lower", (text) => text.toLowerCase()),
  upper: changing("upper", (text) => text.toUpperCase()),
  capitalize: changing("capitalize", capitalize),
  title: {
    apply: (value, _, run) => title(textFor(run, "title", value), run),
  },
  trim: {
    parameters: ["chars"],
    apply: (value, [chars], run) => strip(textFor(run, "trim", value), charsOf(chars, run), "both", run),
  },
  replace: {
    parameters: ["old", "new", "count"],
    required: 2,
    apply: (value, [from, to, count], run) => {
      const old = textArgument(run, "replace", from, "");
      const fresh = textArgument(run, "replace", to, "");
      return replace(textFor(run, "replace", value), old, fresh, countArgument(run, "replace", count, -1), run);
    },
  },
  split: {
    parameters: ["separator", "maxsplit"],
    apply: (value, [separator, maxsplit], run) =>
      split(textFor(run, "split", value), separator, countArgument(run, "split", maxsplit, -1), run),
  },
  truncate: {
    parameters: ["length", "killwords", "end", "leeway"],
    apply: (value, [length, killWords, end, leeway], run) =>
      truncate(
        textFor(run, "truncate", value),
        {
          length: countArgument(run, "truncate", length, 255),
          killWords: flagArgument(run, killWords, false),
          end: textArgument(run, "truncate", end, "..."),
          leeway: countArgument(run, "truncate", leeway, 5),
        },
        run,
      ),
  },
  indent: {
    parameters: ["width", "first"],
    apply: (value, [width, first], run) => {
      const text = textFor(run, "indent", value);
      const space = Math.max(0, countArgument(run, "indent", width, 4));
      spendText(run.budget, text.length);
      const lines = text.split("\n");
      spendItems(run.budget, lines.length);
      spendText(run.budget, lines.length * space);
      const margin = " ".repeat(space);
      const isFirst = flagArgument(run, first, false);
      const indented = lines.map((line, i) => (line === "" || (i === 0 && !isFirst) ? line : margin + line));
      return indented.join("\n");
    },
  },
  urlencode: { apply: (value, _, run) => urlencode(value, run) },
};

function changing(name: string, change: (text: string) => string): Filter {
  return {
    apply: (value, _, run) => {
      const text = textFor(run, name, value);
      spendText(run.budget, text.length);
      return change(text);
    },
  };
}

/** First letter upper, the rest lower. */
export function capitalize(text: string): string {
  const first = text.slice(0, (text.codePointAt(0) ?? 0) > 0xffff ? 2 : 1);
  return first.toUpperCase() + text.slice(first.length).toLowerCase();
}

/** Every word with an upper first letter, the rest lower. */
export function title(text: string, run: Run): string {
  spendText(run.budget, text.length);
  // Unicode classes are dear: 0.2 us a character.
  spendSteps(run.budget, text.length);
  return text.toLowerCase().replace(/(^|[-\s({[<])(\p{L})/gu, (_, before: string, letter: string) => {
    return before + letter.toUpperCase();
  });
}

/** Characters to strip, or undefined for white space. */
export function charsOf(value: unknown, run: Run): string | undefined {
  const inner = unwrap(value);
  return inner === undefined || inner === null ? undefined : textArgument(run, "trim", inner, "");
}

/** `text` without `chars` (white space when undefined) at its ends. */
export function strip(text: string, chars: string | undefined, ends: "both" | "start" | "end", run: Run): string {
  spendText(run.budget, text.length);
  if (chars === undefined) {
    return ends === "both" ? text.trim() : ends === "start" ? text.trimStart() : text.trimEnd();
  }
  spendSteps(run.budget, chars.length);
  const stripped = new Set(chars);
  const all = characters(text, run.budget);
  let from = 0;
  let to = all.length;
  if (ends !== "end") while (from < to && stripped.has(all[from]!)) from += 1;
  if (ends !== "start") while (to > from && stripped.has(all[to - 1]!)) to -= 1;
  const part = all.slice(from, to);
  return typeof part === "string" ? part : part.join("");
}

/** `text` with `old` replaced by `fresh`: at most `count` times, all when it is negative. */
export function replace(text: string, old: string, fresh: string, count: number, run: Run): string {
  const found = Math.min(occurrences(text, old, run), count < 0 ? Infinity : count);
  spendText(run.budget, text.length + found * Math.max(0, fresh.length - old.length));
  if (found === 0) return text;
  let left = found;
  // A function, as `$&` in a replacement text has a meaning to the engine.
  return text.replaceAll(old, (match) => (left-- > 0 ? fresh : match));
}

/** How often `part` occurs in `text`, without overlaps; an empty part occurs at every place. */
export function occurrences(text: string, part: string, run: Run): number {
  if (part === "") return text.length + 1;
  spendSearch(run.budget, text.length, part.length);
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) {
    spendSteps(run.budget, 1);
    count += 1;
  }
  return count;
}

/** The parts of `text` between separators; without a separator the words between white space. */
export function split(text: string, separator: unknown, maxSplit: number, run: Run): string[] {
  const inner = unwrap(separator);
  if (inner === undefined || inner === null) return words(text, maxSplit, run);
  const mark = textArgument(run, "split", inner, "");
  if (mark === "") throw evaluationError(run, "split takes a separator that is not empty; x|list gives the characters");
  const count = occurrences(text, mark, run);
  const cuts = maxSplit < 0 ? count : Math.min(count, maxSplit);
  spendItems(run.budget, cuts + 1);
  spendText(run.budget, text.length);
  const parts: string[] = [];
  let from = 0;
  for (let i = 0; i < cuts; i++) {
    const at = text.indexOf(mark, from);
    parts.push(text.slice(from, at));
    from = at + mark.length;
  }
  parts.push(text.slice(from));
  return parts;
}

function words(text: string, maxSplit: number, run: Run): string[] {
  spendText(run.budget, text.length);
  const parts: string[] = [];
  let rest = text.trimStart();
  while (rest !== "" && (maxSplit < 0 || parts.length < maxSplit)) {
    const at = rest.search(/\s/);
    if (at < 0) break;
    spendItems(run.budget, 1);
    spendSteps(run.budget, 1);
    parts.push(rest.slice(0, at));
    rest = rest.slice(at).trimStart();
  }
  if (rest !== "") parts.push(rest);
  return parts;
}

interface Cut {
  length: number;
  killWords: boolean;
  end: string;
  leeway: number;
}

function truncate(text: string, { length, killWords, end, leeway }: Cut, run: Run): string {
  const all = characters(text, run.budget);
  if (all.length <= length + leeway) return text;
  const part = all.slice(0, Math.max(0, length - end.length));
  const cut = typeof part === "string" ? part : part.join("");
  const space = cut.lastIndexOf(" ");
  return (killWords || space < 0 ? cut : cut.slice(0, space)) + end;
}

/** A text percent-encoded (`/` stays), a map as a query string. */
function urlencode(value: unknown, run: Run): string {
  const inner = unwrap(value);
  if (!isMap(inner)) return percentEncode(textFor(run, "urlencode", inner), run).replaceAll("%2F", "/");
  const keys = keysOf(inner, run.budget);
  spendItems(run.budget, keys.length);
  const part = (item: unknown): string => percentEncode(textOf(item, run.budget), run).replaceAll("%20", "+");
  return keys.map((key) => `${part(key)}=${part(inner[key])}`).join("&");
}

function percentEncode(text: string, run: Run): string {
  spendText(run.budget, text.length * 3);
  // Half of a surrogate pair has no encoding: it becomes U+FFFD, as everywhere where text becomes bytes.
  const whole = Buffer.from(text, "utf8").toString("utf8");
  return encodeURIComponent(whole).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
