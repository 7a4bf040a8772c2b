import { Composer, type Document, isScalar, Lexer, Parser, type YAMLError } from "yaml";
import { convertDocument, NESTING_MAX, QUOTE_TEMPLATE } from "./convert.ts";
import type { Report } from "./findings.ts";
import type { Place } from "./place.ts";
import { findSlip } from "./syntax-slips.ts";

/**
 * Most tokens of a document: a playbook of 10,000 steps has some 520,000. It bounds the time that hostile text can take, since
 * the reader makes an error object for every token of `[,,,,…`: 1.5 s for so many, see {@link withoutStacks}.
 */
export const TOKENS_MAX = 600_000;

/**
 * Reads the first document of a text: YAML 1.2, core schema. Every problem of the text is reported; nothing is thrown.
 * Undefined when the text has no document, or is broken.
 */
export function readYaml(text: string, report: Report): Place | undefined {
  const documents = compose(text, report);
  if (documents === undefined) return undefined;
  const [document, second] = documents;
  const [first] = document.errors;
  const slip = first === undefined || first.code === "TAB_AS_INDENT" ? undefined : findSlip(text, first.pos[0]);
  if (slip !== undefined) {
    report("yaml-syntax", undefined, slip.message, slip.hint, slip.offset);
    return undefined;
  }
  const errors = document.errors.slice(0, SYNTAX_ERRORS_MAX);
  for (const problem of [...errors, ...document.warnings]) reportProblem(problem, text, report);
  // What the reader made of broken text is a guess: problems of its structure would be noise.
  if (document.errors.length > 0) return undefined;
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) {
    report("empty-document", undefined, "the document is empty", START_HINT);
    return undefined;
  }
  if (second !== undefined && second.contents !== null) {
    const message = "the file has a second document; only the first is read";
    report("several-documents", undefined, message, "put each playbook into its own file", second.range[0]);
  }
  return convertDocument(document, text, report);
}

/** One mistake causes many errors in the text after it: only the first ones are worth fixing. */
const SYNTAX_ERRORS_MAX = 5;

const START_HINT = "a playbook begins with `apiVersion: <vendor>/v2` and `kind: Playbook`";

type Parsed = Document.Parsed;

/** The first document and, where there is one, the second. Undefined when a limit was passed (and reported). */
function compose(text: string, report: Report): [Parsed, Parsed | undefined] | undefined {
  const parser = new Parser();
  const tokens = [];
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    count += 1;
    // The parser keeps its own stack; everything after it recurses, and 1 MiB of `[` takes the process with it.
    if (parser.stack.length > NESTING_MAX) {
      const message = `maps and lists are nested deeper than ${NESTING_MAX} levels`;
      report("too-deep", undefined, message, "is a bracket or a brace left open?", parser.offset);
      return undefined;
    }
    if (count > TOKENS_MAX) {
      const message = `the document has more than ${TOKENS_MAX.toLocaleString("en")} YAML tokens`;
      report("too-large", undefined, message, "move data out of the playbook", parser.offset);
      return undefined;
    }
  }
  for (const token of parser.end()) tokens.push(token);
  // Duplicate keys are checked in convert.ts: the reader compares every key with every other.
  const composer = new Composer({
    version: "1.2",
    schema: "core",
    resolveKnownTags: false,
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: "silent",
  });
  const documents = composer.compose(tokens, true, text.length);
  return withoutStacks(() => {
    const first = documents.next().value;
    if (first === undefined) return undefined;
    return [first, documents.next().value ?? undefined];
  });
}

/**
 * Errors that are made meanwhile have no stack, which is never read: the reader's own errors give a place in the text. With one each,
 * 400,000 of them take 5.4 s instead of 0.3 s.
 */
function withoutStacks<Made>(make: () => Made): Made {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function reportProblem(problem: YAMLError, text: string, report: Report): void {
  const offset = problem.pos[0];
  const message = lowerFirst(problem.message.trim());
  if (problem.code === "TAB_AS_INDENT") {
    report("tab-indent", undefined, "this line is indented with a tab", "indent with spaces", offset);
  } else if (problem.name === "YAMLWarning") {
    report("yaml-warning", undefined, message, undefined, offset);
  } else {
    report("yaml-syntax", undefined, message, () => syntaxHint(problem, text), offset);
  }
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** What most often is behind a message of the YAML reader. */
function syntaxHint(problem: YAMLError, text: string): string | undefined {
  const lineStart = text.lastIndexOf("\n", problem.pos[0] - 1) + 1;
  const lineEnd = text.indexOf("\n", lineStart);
  const line = text.slice(lineStart, lineEnd === -1 ? undefined : lineEnd);
  if (/[:-]\s+\{\{/.test(line)) return QUOTE_TEMPLATE;
  switch (problem.code) {
    case "BAD_INDENT":
      return "lines of one map or list begin at the same column";
    case "BLOCK_AS_IMPLICIT_KEY":
      return "put quotes around a text that contains `: `";
    case "BAD_SCALAR_START":
      return "put quotes around the text";
    case "MISSING_CHAR":
      return "is a quote, bracket or brace left open?";
    default:
      return undefined;
  }
}
