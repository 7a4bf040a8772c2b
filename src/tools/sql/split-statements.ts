/** One statement of a SQL text. */
export interface SqlStatement {
  /** Without the semicolon and the blanks around it; comments stay. */
  text: string;
  /** Line of the statement's first character in the whole text, from 1. */
  line: number;
  /** Highest `$n` outside quotes and comments: how many parameters it takes. */
  placeholders: number;
  /** First word in lower case (`select`, `begin`). */
  keyword: string;
}

/**
 * How text is quoted: `postgres` as PostgreSQL does; `snowflake` as Snowflake and ClickHouse do, where a backslash escapes
 * in every string, names may stand in backticks, and `//` begins a comment.
 */
export type SqlDialect = "postgres" | "snowflake";

/**
 * Splits SQL text on the semicolons between statements (language document, section 8): not on those in quotes, dollar
 * quotes, nested comments, parentheses (`create rule … do (…; …)`) or the body of a `begin atomic … end` function. The
 * same rules as psql's. Statements of nothing but comments are left out; an open quote runs to the end of the text,
 * where the server then reports it.
 */
export function splitStatements(sql: string, dialect: SqlDialect = "postgres"): SqlStatement[] {
  const statements: SqlStatement[] = [];
  let statement = emptyStatement(0);
  let at = 0;
  while (at < sql.length) {
    const token = nextToken(sql, at, dialect);
    if (token.kind === "semicolon" && statement.parentheses === 0 && statement.blocks === 0) {
      finish(sql, statement, at, statements);
      statement = emptyStatement(token.end);
    } else {
      take(statement, token, sql.slice(at, token.end));
    }
    at = token.end;
  }
  finish(sql, statement, sql.length, statements);
  return withLines(sql, statements);
}

/** A `$n` or `?` outside quotes and comments, by its offsets in the text. */
export interface SqlPlaceholder {
  start: number;
  end: number;
  /** The number of `$n`; of `?` undefined. */
  number: number | undefined;
}

/** The placeholders of a statement in order. A `?` is one in dialect `snowflake` only: PostgreSQL has operators with it. */
export function sqlPlaceholders(sql: string, dialect: SqlDialect): SqlPlaceholder[] {
  const found: SqlPlaceholder[] = [];
  for (let at = 0; at < sql.length; ) {
    const { kind, end } = nextToken(sql, at, dialect);
    if (kind === "placeholder") {
      found.push({ start: at, end, number: sql[at] === "?" ? undefined : Number(sql.slice(at + 1, end)) });
    }
    at = end;
  }
  return found;
}

/** What is known of the statement that is being read. */
interface OpenStatement {
  start: number;
  blank: boolean;
  placeholders: number;
  parentheses: number;
  /** Open `begin` and `case` of a function body that is not quoted. */
  blocks: number;
  /** The first words in lower case; four are enough for `create or replace function`. */
  words: string[];
}

interface Token {
  kind: "blank" | "comment" | "quoted" | "word" | "placeholder" | "semicolon" | "open" | "close" | "other";
  end: number;
}

function emptyStatement(start: number): OpenStatement {
  return { start, blank: true, placeholders: 0, parentheses: 0, blocks: 0, words: [] };
}

function take(statement: OpenStatement, token: Token, text: string): void {
  if (token.kind === "blank" || token.kind === "comment") return;
  statement.blank = false;
  if (token.kind === "open") statement.parentheses += 1;
  if (token.kind === "close") statement.parentheses = Math.max(0, statement.parentheses - 1);
  if (token.kind === "placeholder" && text !== "?") {
    statement.placeholders = Math.max(statement.placeholders, Number(text.slice(1)));
  }
  if (token.kind === "word") takeWord(statement, text.toLowerCase());
}

function takeWord(statement: OpenStatement, word: string): void {
  if (statement.words.length < 4) statement.words.push(word);
  if (statement.parentheses > 0 || !createsRoutine(statement.words)) return;
  if (word === "begin" || (word === "case" && statement.blocks > 0)) statement.blocks += 1;
  if (word === "end" && statement.blocks > 0) statement.blocks -= 1;
}

function createsRoutine(words: readonly string[]): boolean {
  const object = words[1] === "or" && words[2] === "replace" ? words[3] : words[1];
  return words[0] === "create" && (object === "function" || object === "procedure");
}

function finish(sql: string, statement: OpenStatement, end: number, statements: SqlStatement[]): void {
  if (statement.blank) return;
  const raw = sql.slice(statement.start, end);
  const text = raw.trim();
  // `line` holds the offset until withLines has counted the line breaks once for all statements.
  const line = statement.start + (raw.length - raw.trimStart().length);
  statements.push({ text, line, placeholders: statement.placeholders, keyword: statement.words[0] ?? "" });
}

function withLines(sql: string, statements: SqlStatement[]): SqlStatement[] {
  let line = 1;
  let counted = 0;
  return statements.map((statement) => {
    for (let at = sql.indexOf("\n", counted); at !== -1 && at < statement.line; at = sql.indexOf("\n", at + 1)) {
      line += 1;
      counted = at + 1;
    }
    return { ...statement, line };
  });
}

const BLANK = /\s+/y;
const LINE_COMMENT = /--[^\n]*/y;
const SLASH_COMMENT = /\/\/[^\n]*/y;
const WORD = /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y;
const PLACEHOLDER = /\$\d+/y;
const DOLLAR_TAG = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;
/** Digits with what sticks to them, so that `1e5` or `0x1f` is not read as a word. */
const NUMBER = /\d[\w.]*/y;

function nextToken(sql: string, at: number, dialect: SqlDialect): Token {
  const char = sql[at];
  const match = (pattern: RegExp): number | undefined => {
    pattern.lastIndex = at;
    return pattern.test(sql) ? pattern.lastIndex : undefined;
  };
  if (char === ";") return { kind: "semicolon", end: at + 1 };
  if (char === "(") return { kind: "open", end: at + 1 };
  if (char === ")") return { kind: "close", end: at + 1 };
  if (dialect === "snowflake") {
    if (char === "?") return { kind: "placeholder", end: at + 1 };
    if (char === "'" || char === "`") return { kind: "quoted", end: quotedEnd(sql, at, true) };
    if (char === "/" && sql[at + 1] === "/") return { kind: "comment", end: match(SLASH_COMMENT)! };
  }
  if (char === "'" || char === '"') return { kind: "quoted", end: quotedEnd(sql, at, false) };
  if (char === "-" && sql[at + 1] === "-") return { kind: "comment", end: match(LINE_COMMENT)! };
  if (char === "/" && sql[at + 1] === "*") return { kind: "comment", end: commentEnd(sql, at) };
  if (char === "$") return dollarToken(sql, at, match);
  const blank = match(BLANK);
  if (blank !== undefined) return { kind: "blank", end: blank };
  const number = match(NUMBER);
  if (number !== undefined) return { kind: "other", end: number };
  const word = match(WORD);
  if (word === undefined) return { kind: "other", end: at + 1 };
  // E'…' is a string in which a backslash escapes the quote.
  const escaping = word === at + 1 && (char === "e" || char === "E") && sql[word] === "'";
  return escaping ? { kind: "quoted", end: quotedEnd(sql, word, true) } : { kind: "word", end: word };
}

function dollarToken(sql: string, at: number, match: (pattern: RegExp) => number | undefined): Token {
  const placeholder = match(PLACEHOLDER);
  if (placeholder !== undefined) return { kind: "placeholder", end: placeholder };
  const opened = match(DOLLAR_TAG);
  if (opened === undefined) return { kind: "other", end: at + 1 };
  const tag = sql.slice(at, opened);
  const closing = sql.indexOf(tag, opened);
  return { kind: "quoted", end: closing === -1 ? sql.length : closing + tag.length };
}

/** End of the string or quoted name that opens at `at`. A doubled quote stays inside. */
function quotedEnd(sql: string, at: number, backslashEscapes: boolean): number {
  const quote = sql[at];
  let index = at + 1;
  while (index < sql.length) {
    const char = sql[index];
    if (backslashEscapes && char === "\\") index += 2;
    else if (char !== quote) index += 1;
    else if (sql[index + 1] === quote) index += 2;
    else return index + 1;
  }
  return sql.length;
}

/** Comments nest in PostgreSQL. */
function commentEnd(sql: string, at: number): number {
  let depth = 1;
  let index = at + 2;
  while (index < sql.length && depth > 0) {
    const pair = sql.slice(index, index + 2);
    if (pair === "/*") depth += 1;
    if (pair === "*/") depth -= 1;
    index += pair === "/*" || pair === "*/" ? 2 : 1;
  }
  return index;
}
