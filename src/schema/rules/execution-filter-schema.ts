import * as v from "valibot";
import type { JsonObject } from "../words/json.ts";
import { IdInput, JsonObjectValue, PageQuery, storableText, TimeInput } from "../words/wire.ts";
import { EXECUTION_STATES, type ExecutionFilter, FILTER_IDS_MAX, FILTER_MAP_MAX } from "./execution-filter.ts";
import {
  isLabelName,
  isLabelValue,
  LABEL_NAME_RULE,
  LABEL_VALUE_RULE,
  LABELS_MAX,
  labelsProblem,
} from "./execution-labels.ts";
import { ORIGIN_KINDS } from "./origin.ts";

const text = v.pipe(storableText(512), v.minLength(1, "must not be empty"));

const States = v.pipe(
  v.union([v.string(), v.array(v.string())]),
  v.transform((given) => (typeof given === "string" ? given.split(",") : given).map((one) => one.trim().toUpperCase())),
  v.check(
    (names) => names.length > 0 && names.every((name) => (EXECUTION_STATES as readonly string[]).includes(name)),
    `must be one of ${EXECUTION_STATES.join(", ")}, or several of them`,
  ),
  v.transform((names) => EXECUTION_STATES.filter((state) => names.includes(state))),
);

const Ids = v.pipe(
  v.union([v.string(), v.array(v.string())]),
  v.transform((given) => [...new Set((typeof given === "string" ? given.split(",") : given).map((one) => one.trim()))]),
  v.check((ids) => ids.every((id) => v.is(IdInput, id)), "must be ids of executions"),
  v.check((ids) => ids.length > 0, "must not be empty"),
  v.check((ids) => ids.length <= FILTER_IDS_MAX, `must not be more than ${FILTER_IDS_MAX}`),
);

/** Names and values, neither none nor too many; numbers and booleans are taken as texts. */
function mapOf(isName: (name: string) => boolean, isValue: (value: string) => boolean, rule: string) {
  return v.pipe(
    JsonObjectValue,
    v.check(
      (map) => Object.values(map).every((value) => ["string", "number", "boolean"].includes(typeof value)),
      "must have texts as values",
    ),
    v.transform((map) => Object.fromEntries(Object.entries(map).map(([name, value]) => [name, String(value)]))),
    v.check((map) => Object.keys(map).length > 0, "must not be empty"),
    v.check((map) => Object.keys(map).length <= FILTER_MAP_MAX, `must not have more than ${FILTER_MAP_MAX} entries`),
    v.check((map) => Object.entries(map).every(([name, value]) => isName(name) && isValue(value)), rule),
  );
}

const isText = (value: string) => v.is(text, value);

/** A filter of executions, perhaps without a condition; unknown keys are refused. */
export const ExecutionFilterObject = v.strictObject({
  status: v.exactOptional(States),
  path: v.exactOptional(text),
  path_contains: v.exactOptional(text),
  version: v.exactOptional(
    v.pipe(
      v.union([v.string(), v.number()]),
      v.transform(String),
      v.check((version) => /^[1-9]\d{0,8}$/.test(version), "must be a version number"),
      v.transform(Number),
    ),
  ),
  since: v.exactOptional(TimeInput),
  until: v.exactOptional(TimeInput),
  error_code: v.exactOptional(text),
  step: v.exactOptional(text),
  labels: v.exactOptional(
    mapOf(
      isLabelName,
      isLabelValue,
      `must have names that are ${LABEL_NAME_RULE}, and values that are ${LABEL_VALUE_RULE}`,
    ),
  ),
  input: v.exactOptional(
    mapOf(isText, (value) => v.is(storableText(512), value), "must have names and values of 512 characters at most"),
  ),
  parent_execution_id: v.exactOptional(IdInput),
  started_by: v.exactOptional(v.picklist(ORIGIN_KINDS, `must be one of ${ORIGIN_KINDS.join(", ")}`)),
  started_by_id: v.exactOptional(IdInput),
  // False would be a filter that leaves nothing out.
  roots_only: v.exactOptional(v.literal(true, "must be true, or left out")),
  id_prefix: v.exactOptional(v.pipe(v.string(), v.regex(/^[1-9]\d{0,15}$/, "must be the first digits of an id"))),
  execution_ids: v.exactOptional(Ids),
}) satisfies v.GenericSchema<unknown, ExecutionFilter>;

/** The same for what changes all that it finds: one condition at least. */
export const ExecutionFilterBody = v.pipe(
  ExecutionFilterObject,
  v.check(
    (filter) => Object.keys(filter).length > 0,
    "must have a condition: an empty filter would mean every execution",
  ),
);

const hasTexts = (map: JsonObject) => Object.values(map).every((value) => typeof value === "string");

/** Labels of a start. */
export const LabelsInput = v.pipe(
  JsonObjectValue,
  v.check(hasTexts, "must have texts as values"),
  v.transform((map) => map as Record<string, string>),
  v.rawCheck(({ dataset, addIssue }) => {
    const problem = dataset.typed ? labelsProblem(dataset.value) : undefined;
    if (problem !== undefined) addIssue({ message: problem });
  }),
  v.description(
    `Words to find it by, over those of \`executor.spec.labels\`: ${LABELS_MAX} at most. A name is ${LABEL_NAME_RULE}; a value ${LABEL_VALUE_RULE}.`,
  ),
);

/** Query of `GET /api/executions`. Its texts are read to an `ExecutionFilter`, and checked as one. */
export const ExecutionsQuery = v.object({
  ...PageQuery.entries,
  q: described(
    "What people type: `status:failed path:etl/* label.team:data error:HTTP_429 started:>1h`. What stands here does not stand in another parameter too.",
  ),
  status: described("In one of these states; several with commas: `PENDING,RUNNING`."),
  path: described(
    "Of the playbook with exactly this path; with `*` within a part of it, or `**` over parts, of all that fit.",
  ),
  path_contains: described("Of playbooks that have this text in their path, in whatever case."),
  version: described("Of this version of the playbook."),
  since: described("Started then or later (RFC 3339)."),
  until: described("Started before then (RFC 3339)."),
  error_code: described("Their error has this code."),
  step: described("They failed at this step, or have open work in it."),
  labels: described("With these labels: `team=data,tier=gold`. Also `label.team=data` as a parameter of its own."),
  input: described(
    "With these inputs: `day=2026-01-31`. Also `input.day=2026-01-31`; names of what is within an input have dots.",
  ),
  parent_execution_id: described("Called by this execution."),
  started_by: described(`Started by one of ${ORIGIN_KINDS.join(", ")}.`),
  started_by_id: described("Started by the user, trigger, execution or bulk operation with this id."),
  roots_only: described("`true`: called by no other execution."),
  id_prefix: described("The first digits of their ids."),
  execution_ids: described(`With one of these ids: \`7211,7212\`, ${FILTER_IDS_MAX} at most.`),
});

/** Which executions are counted: as {@link ExecutionsQuery}, without its pages. */
export const ExecutionCountsQuery = v.omit(ExecutionsQuery, ["limit", "cursor"]);

/** A parameter whose text the filter's schema checks. */
function described(words: string) {
  return v.exactOptional(v.pipe(v.string(), v.description(words)));
}
