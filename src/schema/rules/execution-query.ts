import { EXECUTION_STATES, type ExecutionFilter, type ExecutionStateName, FILTER_MAP_MAX } from "./execution-filter.ts";
import { isLabelName, LABEL_NAME_RULE } from "./execution-labels.ts";
import { ORIGIN_KINDS, type OriginKind } from "./origin.ts";

/*
 * What people type to find executions: `status:failed path:etl/* label.team:data error:HTTP_429 started:>1h`. The same text means the
 * same in the API (`q`), on the command line and in the page's search box. Terms stand side by side and must all hold. A word
 * without a colon is a part of the path, or, in digits, the beginning of an id. No library, because the page has this file too.
 */

/** Longest text that is read, characters. */
export const QUERY_CHARS_MAX = 2_048;

/** What a query cannot mean, and where. */
export interface QueryProblem {
  message: string;
  /** The first character that it is about, from 0, and the one after the last. */
  from: number;
  to: number;
}

/** A query that was read. */
export type ReadQuery =
  | { filter: ExecutionFilter; problem?: undefined }
  | { problem: QueryProblem; filter?: undefined };

/** A term as it stands in the text. */
interface Term {
  /** Without its colon; undefined for a word alone. */
  key: string | undefined;
  value: string;
  isQuoted: boolean;
  /** Places in the text, from 0; `at` is where the value begins. */
  from: number;
  at: number;
  to: number;
}

/** Stops the reading of a query. */
class Unreadable extends Error {
  readonly problem: QueryProblem;
  constructor(message: string, { from, to }: Pick<QueryProblem, "from" | "to">) {
    super(message);
    this.problem = { message, from, to };
  }
}

/** Reads a query. `now`, in milliseconds since 1970, is what `1h` counts from. An empty text is an empty filter. */
export function readExecutionQuery(text: string, now: number): ReadQuery {
  try {
    if (text.length > QUERY_CHARS_MAX) {
      const message = `a search has ${QUERY_CHARS_MAX} characters at most, this one ${text.length}`;
      throw new Unreadable(message, { from: QUERY_CHARS_MAX, to: text.length });
    }
    const filter: ExecutionFilter = {};
    for (const term of termsOf(text)) addTerm(filter, term, now);
    if (filter.since !== undefined && filter.until !== undefined && filter.since >= filter.until) {
      throw new Unreadable("nothing starts after the one time and before the other", { from: 0, to: text.length });
    }
    return { filter };
  } catch (error) {
    if (error instanceof Unreadable) return { problem: error.problem };
    throw error;
  }
}

/** The problem as people read it: its sentence, the text, and marks below the place. */
export function queryProblemText(text: string, { message, from, to }: QueryProblem): string {
  // A tab or a line break would move the marks.
  const line = text.replace(/\s/g, " ");
  return `${message}\n  ${line}\n  ${" ".repeat(from)}${"^".repeat(Math.max(1, Math.min(to, line.length) - from))}`;
}

const KEY = /[A-Za-z_][\w.\-/]*(?=:)/y;

function termsOf(text: string): Term[] {
  const terms: Term[] = [];
  let at = skipSpace(text, 0);
  while (at < text.length) {
    const from = at;
    KEY.lastIndex = at;
    const key = KEY.exec(text)?.[0];
    const valueAt = key === undefined ? at : at + key.length + 1;
    const { value, to, isQuoted } = readValue(text, valueAt);
    if (value === "" && !isQuoted) {
      throw new Unreadable(`write a value right after '${key}:'`, { from, to: Math.max(to, from + 1) });
    }
    terms.push({ key, value, isQuoted, from, at: valueAt, to });
    at = skipSpace(text, to);
  }
  return terms;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && /\s/.test(text[at] ?? "")) at += 1;
  return at;
}

/** A value up to the next space, or in quotation marks, in which a backslash takes the next character as it is. */
function readValue(text: string, from: number): { value: string; to: number; isQuoted: boolean } {
  if (text[from] !== '"') {
    let to = from;
    while (to < text.length && !/\s/.test(text[to] ?? "")) to += 1;
    return { value: text.slice(from, to), to, isQuoted: false };
  }
  let value = "";
  for (let at = from + 1; at < text.length; at += 1) {
    const character = text[at] ?? "";
    if (character === '"') return { value, to: at + 1, isQuoted: true };
    if (character === "\\") at += 1;
    value += character === "\\" ? (text[at] ?? "") : character;
  }
  throw new Unreadable("a quotation mark is not closed", { from, to: text.length });
}

/** What each key takes; `label.NAME` and `input.NAME` are beside them. */
const KEYS = new Map<string, (filter: ExecutionFilter, term: Term, now: number) => void>(
  Object.entries({
    status: (filter, term) => put(filter, term, "status", statesOf(term)),
    path: (filter, term) => put(filter, term, "path", textOf(term)),
    version: (filter, term) => put(filter, term, "version", versionOf(term)),
    error: (filter, term) => put(filter, term, "error_code", textOf(term)),
    step: (filter, term) => put(filter, term, "step", textOf(term)),
    parent: (filter, term) => put(filter, term, "parent_execution_id", idOf(term)),
    by: (filter, term) => put(filter, term, "started_by", kindOf(term)),
    by_id: (filter, term) => put(filter, term, "started_by_id", idOf(term)),
    id: (filter, term) => put(filter, term, "id_prefix", idOf(term)),
    started: addStarted,
    since: (filter, term, now) => put(filter, term, "since", momentOf(term.value, term, now)),
    until: (filter, term, now) => put(filter, term, "until", momentOf(term.value, term, now)),
    is(filter, term) {
      if (term.value !== "root") throw new Unreadable(`'is:' takes root: executions that no other one called`, term);
      put(filter, term, "roots_only", true);
    },
  }),
);

/** Other words for keys, as the API has them. */
const ALIASES = new Map(
  Object.entries({
    state: "status",
    error_code: "error",
    code: "error",
    parent_execution_id: "parent",
    started_by: "by",
    started_by_id: "by_id",
    id_prefix: "id",
  }),
);

/** The keys of the language, for messages and help. */
export const QUERY_KEYS: readonly string[] = [...KEYS.keys(), "label.NAME", "input.NAME"];

function addTerm(filter: ExecutionFilter, term: Term, now: number): void {
  const { key } = term;
  if (key === undefined) {
    addWord(filter, term);
    return;
  }
  const [, map, name] = /^(labels?|input)\.(.+)$/.exec(key) ?? [];
  if (map !== undefined && name !== undefined) {
    addEntry(filter, term, map === "input" ? "input" : "labels", name);
    return;
  }
  const word = key.toLowerCase();
  const add = KEYS.get(ALIASES.get(word) ?? word);
  if (add !== undefined) {
    add(filter, term, now);
    return;
  }
  const place = { from: term.from, to: term.at - 1 };
  if (/^(labels?|input)\.?$/.test(key)) throw new Unreadable(`write '${key.replace(/\.$/, "")}.NAME:value'`, place);
  const hint = `the keys are ${QUERY_KEYS.join(", ")}`;
  throw new Unreadable(`there is no key '${key}': ${hint}. A word with a colon stands in quotation marks`, place);
}

function addWord(filter: ExecutionFilter, term: Term): void {
  const { value, isQuoted } = term;
  if (!isQuoted && /^(AND|OR|NOT)$/.test(value)) {
    throw new Unreadable(`'${value}' is not needed or not possible: terms side by side must all hold`, term);
  }
  if (!isQuoted && /^-\w+:/.test(value)) {
    throw new Unreadable("there is no negation: name what is to be found", term);
  }
  if (!isQuoted && /^[1-9]\d{0,15}$/.test(value)) put(filter, term, "id_prefix", value);
  else if (!isQuoted && value.includes("*")) put(filter, term, "path", textOf(term));
  else put(filter, term, "path_contains", textOf(term));
}

function addEntry(filter: ExecutionFilter, term: Term, map: "labels" | "input", name: string): void {
  if (map === "labels" && !isLabelName(name)) {
    throw new Unreadable(`'${name}' is no name of a label: ${LABEL_NAME_RULE}`, { from: term.from, to: term.at - 1 });
  }
  const known = filter[map] ?? {};
  if (Object.hasOwn(known, name)) throw twice(term, `${term.key}`);
  if (Object.keys(known).length === FILTER_MAP_MAX) {
    throw new Unreadable(`a search names ${FILTER_MAP_MAX} of them at most`, term);
  }
  filter[map] = { ...known, [name]: textOf(term) };
}

/** `started:>1h`: later than an hour ago; `started:<2026-01-31`: before that day. */
function addStarted(filter: ExecutionFilter, term: Term, now: number): void {
  const [, sign, text] = /^(>=?|<=?)(.*)$/.exec(term.value) ?? [];
  if (sign === undefined || text === undefined) {
    const hint = "started:>1h (within the last hour), or started:<2026-01-31 (before that day)";
    throw new Unreadable(`'started:' takes > or < before a time: ${hint}`, term);
  }
  put(filter, term, sign.startsWith(">") ? "since" : "until", momentOf(text, term, now));
}

/** Sets a key once. */
function put<K extends keyof ExecutionFilter>(
  filter: ExecutionFilter,
  term: Term,
  key: K,
  value: NonNullable<ExecutionFilter[K]>,
): void {
  if (filter[key] !== undefined) throw twice(term, NAMES[key] ?? key);
  filter[key] = value;
}

const NAMES: Partial<Record<keyof ExecutionFilter, string>> = {
  since: "the earliest time",
  until: "the latest time",
  path_contains: "a part of the path",
  id_prefix: "the beginning of an id",
  error_code: "error",
};

function twice({ from, to }: Term, what: string): Unreadable {
  return new Unreadable(`${what} is named twice, and both would have to hold`, { from, to });
}

function textOf(term: Term): string {
  const { value } = term;
  if (value === "") throw new Unreadable("the value is empty", term);
  if (value.length > TEXT_MAX) throw new Unreadable(`a value has ${TEXT_MAX} characters at most`, term);
  if (/\u0000|\p{Surrogate}/u.test(value)) throw new Unreadable("the value holds what is no character", term);
  return value;
}

const TEXT_MAX = 512;

function statesOf(term: Term): ExecutionStateName[] {
  const names = term.value.toUpperCase().split(",");
  const wrong = names.find((name) => !(EXECUTION_STATES as readonly string[]).includes(name));
  if (wrong !== undefined) {
    const known = EXECUTION_STATES.join(", ").toLowerCase();
    throw new Unreadable(`there is no status '${wrong.toLowerCase()}': one of ${known}, or several with commas`, term);
  }
  return EXECUTION_STATES.filter((state) => names.includes(state));
}

function kindOf(term: Term): OriginKind {
  const kind = ORIGIN_KINDS.find((name) => name === term.value.toLowerCase());
  if (kind === undefined)
    throw new Unreadable(`nothing is started by '${term.value}': one of ${ORIGIN_KINDS.join(", ")}`, term);
  return kind;
}

function versionOf(term: Term): number {
  if (!/^[1-9]\d{0,8}$/.test(term.value)) throw new Unreadable("a version is a whole number from 1", term);
  return Number(term.value);
}

function idOf(term: Term): string {
  if (!/^[1-9]\d{0,15}$/.test(term.value)) throw new Unreadable("an id is a whole number", term);
  return term.value;
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** `90s`, `15m`, `2h`, `7d`, `2w` before now, a day, or a time. */
function momentOf(text: string, term: Term, now: number): string {
  const [, amount, unit = ""] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  const isTime = amount !== undefined || /^\d{4}-\d\d-\d\d/.test(text);
  const at = amount === undefined ? Date.parse(text) : now - Number(amount) * (UNITS_MS[unit] ?? 0);
  if (isTime && at >= 0 && at <= LAST_MS) return new Date(at).toISOString();
  const message = `a time is 90s, 15m, 2h, 7d or 2w before now, a day as 2026-01-31, or 2026-01-31T12:00:00Z`;
  throw new Unreadable(`${message}; got '${text}'`, term);
}
