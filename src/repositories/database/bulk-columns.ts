/*
 * Columns of many rows as parameters of one statement. A column is one text that PostgreSQL takes apart in C, and the
 * statement's text is the same for any number of rows, so that it stays prepared. The driver's own arrays cost three times
 * as much here: they look at each value's type again.
 *
 * A column without any value is an empty array: `unnest` fills it up with NULL beside the others.
 */

/** Numbers and ids, which need no quotes. NULL for a missing value. */
export function numbers<R>(rows: readonly R[], get: (row: R) => number | string | null | undefined): string {
  let text = "";
  let some = false;
  for (const row of rows) {
    const value = get(row);
    if (value == null) {
      text += ",NULL";
    } else {
      text += `,${value}`;
      some = true;
    }
  }
  return some ? `{${text.slice(1)}}` : "{}";
}

/**
 * Any texts. NULL for a missing value. PostgreSQL has no U+0000 in texts: it becomes U+FFFD, as half of a surrogate pair does
 * in UTF-8. Otherwise one odd name in a report would refuse the changes of all other executions too.
 */
export function texts<R>(rows: readonly R[], get: (row: R) => string | null | undefined): string {
  let text = "";
  let some = false;
  for (const row of rows) {
    const value = get(row);
    if (value == null) {
      text += ",NULL";
    } else {
      text += `,"${ODD.test(value) ? quoted(value) : value}"`;
      some = true;
    }
  }
  return some ? `{${text.slice(1)}}` : "{}";
}

/**
 * JSON documents as text, for `string_to_array($1, E'\x1e', '')`: nothing in them needs quotes, because JSON text never
 * has this control character as it is. NULL for undefined.
 */
export function documents<R>(rows: readonly R[], get: (row: R) => string | undefined): string {
  let text = "";
  let some = false;
  for (const row of rows) {
    const value = get(row);
    if (value !== undefined) {
      text += value;
      some = true;
    }
    text += DOCUMENT_END;
  }
  return some ? text.slice(0, -1) : "";
}

/** U+001E, "record separator". */
const DOCUMENT_END = "\u001e";

const ODD = /["\\\u0000]/;

function quoted(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\u0000", "\ufffd");
}
