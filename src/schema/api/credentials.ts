import * as v from "valibot";
import { CREDENTIAL_TYPES } from "../rules/credential-types.ts";
import { SecretSchema } from "../rules/secret-schema.ts";
import { FlowError } from "../words/errors.ts";
import type { JsonObject } from "../words/json.ts";
import {
  IdText,
  isStorable,
  JsonObjectValue,
  JsonValue,
  NextCursor,
  PageQuery,
  storableText,
  Timestamp,
  VersionNumber,
} from "../words/wire.ts";
import { RESOURCE_KINDS } from "./catalog.ts";

/*
 * Bodies, queries and answers of the routes of credentials (interface specification, Credentials). Nothing here shows data but
 * the one answer that says so.
 */

const NAME_MAX = 255;
/** A service account is 3 KB, a chain of certificates 20. */
const DATA_CHARS_MAX = 65_536;
const META_CHARS_MAX = 16_384;

/** Names and ids are used in the same addresses: a number would be taken for one, and `.` and `..` never arrive. */
const isName = (text: string) =>
  isStorable(text) && text === text.trim() && !/\p{Cc}/u.test(text) && !/^(\d+|\.|\.\.)$/.test(text);

/** Name of a credential. */
export const CredentialName = v.pipe(
  v.string(),
  v.minLength(1, "must not be empty"),
  v.maxLength(NAME_MAX),
  v.check(isName, "must be no number, and have no control characters and no blanks around it"),
);

const shortEnough = (charsMax: number) =>
  v.check(
    (value: JsonObject) => JSON.stringify(value).length <= charsMax,
    `must be at most ${charsMax.toLocaleString("en")} characters of JSON`,
  );

/** Everything of a credential but its name. What is left out is empty afterwards: a replacement replaces. */
const content = {
  type: v.pipe(v.picklist(CREDENTIAL_TYPES), v.description("Says which keys `data` must have.")),
  data: v.pipe(JsonObjectValue, shortEnough(DATA_CHARS_MAX), v.description("The secret: kept encrypted.")),
  description: v.exactOptional(v.nullable(storableText(4_000))),
  tags: v.exactOptional(v.nullable(v.pipe(v.array(storableText(100)), v.maxLength(50)))),
  schema: v.exactOptional(v.nullable(SecretSchema)),
  meta: v.exactOptional(
    v.nullable(
      v.pipe(
        JsonObjectValue,
        shortEnough(META_CHARS_MAX),
        v.check((meta) => isStorable(JSON.stringify(meta)), "must not hold U+0000 or half a character"),
        v.description("Version, owner, environment: readable without the key."),
      ),
    ),
  ),
};

/** Body of `POST /api/credentials`. */
export const CredentialBody = v.object({ name: CredentialName, ...content });
export type CredentialBody = v.InferOutput<typeof CredentialBody>;

/** A body from elsewhere than a request. Throws `FlowError` INVALID_INPUT with every problem; none holds a value of `data`. */
export function readCredentialBody(body: unknown): CredentialBody {
  const result = v.safeParse(CredentialBody, body);
  if (result.success) return result.output;
  const problems = result.issues.map((issue) => {
    const key = v.getDotPath(issue);
    return key === null ? issue.message : `${key}: ${issue.message}`;
  });
  throw new FlowError("INVALID_INPUT", problems.join("; "));
}

/** Body of `PUT /api/credentials/{name}`. */
export const ReplaceCredentialBody = v.object({ name: v.exactOptional(CredentialName), ...content });

const PLAYBOOKS_MAX = 100;

/** Body of `PUT /api/credentials/{name}/playbooks`. */
export const CredentialPlaybooksBody = v.object({
  playbooks: v.pipe(
    v.array(v.pipe(storableText(1_000), v.minLength(1, "must not be empty"))),
    v.maxLength(PLAYBOOKS_MAX),
    v.description("Paths and patterns, as `etl/**`, in place of those from before. None: no playbook may use it."),
  ),
});

/** A credential without its data. */
export const CredentialRecord = v.object({
  id: IdText,
  name: v.string(),
  type: v.string(),
  description: v.nullable(v.string()),
  tags: v.array(v.string()),
  schema: v.nullable(v.record(v.string(), v.unknown())),
  meta: v.nullable(v.record(v.string(), v.unknown())),
  playbooks: v.exactOptional(
    v.pipe(
      v.array(v.string()),
      v.description("Paths and patterns of the playbooks that may use it: of `meta`, else by the service's default."),
    ),
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type CredentialRecord = v.InferOutput<typeof CredentialRecord>;

/** Query of `GET /api/credentials/{identifier}`. */
export const CredentialQuery = v.object({
  include_data: v.exactOptional(
    v.pipe(v.picklist(["true", "false"]), v.description("Adds the decrypted data; each time is audited.")),
  ),
  execution_id: v.exactOptional(
    v.pipe(IdText, v.description("The execution that needs it: credentials are for certain playbooks.")),
  ),
});

/** Answer of `GET /api/credentials/{identifier}`. */
export const CredentialAnswer = v.object({
  ...CredentialRecord.entries,
  data: v.exactOptional(JsonObjectValue),
});
export type CredentialAnswer = v.InferOutput<typeof CredentialAnswer>;

const filterText = v.pipe(
  v.string(),
  v.maxLength(NAME_MAX),
  v.check(isStorable, "must not hold U+0000 or half a character"),
);

/** Query of `GET /api/credentials/{identifier}/uses`. */
export const CredentialUsesQuery = PageQuery;

/** Answer of `GET /api/credentials/{identifier}/uses`, in the order of paths. */
export const CredentialUsesAnswer = v.object({
  items: v.pipe(
    v.array(
      v.object({
        path: v.string(),
        version: VersionNumber,
        kind: v.picklist(RESOURCE_KINDS),
        catalog_id: IdText,
        places: v.array(
          v.object({
            place: v.pipe(v.string(), v.description("Where in the document, as `workflow[0].tool.auth`.")),
            by_default: v.pipe(
              v.boolean(),
              v.description("The name is a default of the workload: a run may be given another."),
            ),
          }),
        ),
      }),
    ),
    v.description("Newest versions whose documents name it. A page may be short, or empty, and not the last."),
  ),
  hidden: v.pipe(
    v.number(),
    v.integer(),
    v.description("How many more of this page name it, which the caller may not see."),
  ),
  next_cursor: NextCursor,
});
export type CredentialUsesAnswer = v.InferOutput<typeof CredentialUsesAnswer>;

/** Query of `GET /api/credentials`. */
export const CredentialsQuery = v.object({
  ...PageQuery.entries,
  type: v.exactOptional(v.pipe(v.picklist(CREDENTIAL_TYPES), v.description("Only those of this type."))),
  tag: v.exactOptional(v.pipe(filterText, v.description("Only those with this tag."))),
  q: v.exactOptional(v.pipe(filterText, v.description("Only those with this text in name, description or a tag."))),
});

/** Answer of `GET /api/credentials`, in the order of names. */
export const CredentialsAnswer = v.object({ items: v.array(CredentialRecord), next_cursor: NextCursor });
export type CredentialsAnswer = v.InferOutput<typeof CredentialsAnswer>;

/** Answer of `DELETE /api/credentials/{name}`. */
export const DeletedCredential = v.object({ status: v.literal("success"), name: v.string() });

/** Body of `POST /api/sqldb/execute`. */
export const SqlExecuteBody = v.object({
  credential_name: v.pipe(
    storableText(255),
    v.nonEmpty(),
    v.description("Name, or id, of a credential of type sqldb."),
  ),
  query: v.pipe(storableText(1_000_000), v.nonEmpty(), v.description("One statement, or several that run in turn.")),
  parameters: v.exactOptional(v.pipe(v.array(JsonValue), v.maxLength(10_000), v.description("Values of $1, $2, …."))),
});

/** Its answer: that of the last statement. */
export const SqlExecuteAnswer = v.object({
  status: v.literal("ok"),
  columns: v.array(v.string()),
  rows: v.array(v.record(v.string(), v.unknown())),
  row_count: v.pipe(v.number(), v.description("Rows given or, by a statement that gives none, changed.")),
  command: v.pipe(v.string(), v.description("SELECT, INSERT, CREATE TABLE, ….")),
});
