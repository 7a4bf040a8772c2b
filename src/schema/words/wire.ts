import * as v from "valibot";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";

/* What every route of the HTTP API shares (interface specification, Resources and Errors). */

/** An id in an answer: text, so that a client which reads JSON numbers loses no digit. */
export const IdText = v.pipe(v.string(), v.regex(/^[1-9]\d{0,15}$/));

/** An id in a request: text or a JSON number (both forms are accepted everywhere); text from here on. */
export const IdInput = v.pipe(
  v.union([v.string(), v.number()]),
  v.transform(String),
  v.check((text) => /^[1-9]\d{0,15}$/.test(text) && Number(text) <= Number.MAX_SAFE_INTEGER, "must be an id"),
);

/** Any JSON value. */
export const JsonValue = v.custom<Json>((value) => value !== undefined);

/** A JSON object, taken as it is: a schema of records would silently drop keys such as `constructor`. */
export const JsonObjectValue = v.pipe(
  v.custom<JsonObject>(isJsonObject, "must be an object"),
  v.metadata({ type: "object" }),
);

/** PostgreSQL stores no U+0000, and half of a surrogate pair is no character. */
export function isStorable(text: string): boolean {
  return !/\u0000|\p{Surrogate}/u.test(text);
}

/** A text of a caller that becomes part of a row, at most `length` characters. */
export function storableText(length: number) {
  return v.pipe(v.string(), v.maxLength(length), v.check(isStorable, "must not hold U+0000 or half a character"));
}

/** RFC 3339, UTC, with milliseconds. */
export const Timestamp = v.pipe(v.string(), v.regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/));

/** A moment that a caller names. */
export const TimeInput = v.pipe(
  v.string(),
  v.check((text) => /^\d{4}-\d\d-\d\d/.test(text) && isStorableTime(Date.parse(text)), "must be an RFC 3339 time"),
);

/** PostgreSQL has no year 0, and after 9999 JavaScript writes years in a form that it does not read. */
function isStorableTime(ms: number): boolean {
  return ms >= Date.parse("0001-01-01T00:00:00Z") && ms <= Date.parse("9999-12-31T23:59:59.999Z");
}

/** Version of a catalog entry: 1 and up. */
export const VersionNumber = v.pipe(v.number(), v.integer(), v.minValue(1));

/** Version that an execution runs. */
export const RunVersion = v.pipe(
  v.number(),
  v.integer(),
  v.minValue(0),
  v.description("0: a draft, which is no version of the catalog."),
);

/** Items of a page when the caller does not say. */
export const PAGE_DEFAULT = 100;
/** Most items of a page. */
export const PAGE_MAX = 500;

const isPageSize = (text: string) => /^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= PAGE_MAX;

/** `limit` and `cursor` of a list. They stay texts here: {@link pageSize} gives the number. */
export const PageQuery = v.object({
  limit: v.exactOptional(
    v.pipe(
      v.string(),
      v.check(isPageSize, `must be a whole number from 1 to ${PAGE_MAX}`),
      v.description(`Items of a page, ${PAGE_DEFAULT} by default, ${PAGE_MAX} at most.`),
    ),
  ),
  cursor: v.exactOptional(v.pipe(v.string(), v.description("`next_cursor` of the page before."))),
});

/** The number behind a validated `limit`. */
export function pageSize(limit: string | number | undefined): number {
  return limit === undefined ? PAGE_DEFAULT : Number(limit);
}

/** Where the next page begins; null on the last one. */
export const NextCursor = v.nullable(v.string());

/** Body of every error answer. */
export const ErrorBody = v.object({
  error: v.pipe(v.string(), v.description("What was attempted, why it failed, what to do next.")),
  code: v.pipe(v.string(), v.description("For programs.")),
  detail: v.exactOptional(v.unknown()),
  request_id: IdText,
});
export type ErrorBody = v.InferOutput<typeof ErrorBody>;

/** Answer of `GET /api/health`. */
export const HealthAnswer = v.object({
  /** `degraded`: the process answers and cannot do its work; `stopping`: it takes no new callers. */
  status: v.picklist(["ok", "degraded", "stopping"]),
  /** Why it is not `ok`. */
  why: v.optional(v.string()),
});
/** See {@link HealthAnswer}. */
export type HealthAnswer = v.InferOutput<typeof HealthAnswer>;
