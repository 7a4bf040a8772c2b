import { customType, integer, json, jsonb, pgSchema, timestamp } from "drizzle-orm/pg-core";
import type { JsonObject } from "../../schema/words/json.ts";

/** The schema that holds every table of the service (interface specification, "Components"). */
export const flow = pgSchema("flow");

/** The schema that holds login and access control, and what was done under it. */
export const auth = pgSchema("auth");

/** A 64-bit id. Text in the program: an id is never calculated with, and drivers give 64-bit integers as text anyway. */
export const id = customType<{ data: string; driverData: string }>({ dataType: () => "bigint" });

/** Text that is compared byte by byte, whatever the database's locale: prefixes and pages of names use the plain index. */
export const name = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' });

/** Bytes as they are. */
export const bytes = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/** A moment, to the millisecond: what the API shows, so that a time read there finds its row again. */
export const instant = (column: string) => timestamp(column, { withTimezone: true, precision: 3, mode: "date" });

/** When the row was written, by the database's clock. */
export const createdAt = () => instant("created_at").notNull().defaultNow();

/** When the row was changed last, by the database's clock. */
export const updatedAt = () => instant("updated_at").notNull().defaultNow();

/** A JSON object. */
export const object = (column: string) => jsonb(column).$type<JsonObject>();

/**
 * A JSON document exactly as it was written: the order of its keys, and U+0000 in its texts, which `jsonb` loses and refuses.
 * Documents that playbooks can read again are kept so; no SQL reads into them.
 */
export const document = <T = JsonObject>(column: string) => json(column).$type<T>();

/** A number of something, never negative: give the table a check too. */
export const count = (column: string) => integer(column).notNull().default(0);
