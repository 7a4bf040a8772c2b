import * as v from "valibot";
import { CATALOG_PATH_MAX } from "../api/catalog.ts";
import { IdText, NextCursor, PageQuery, storableText, TimeInput, Timestamp, VersionNumber } from "../words/wire.ts";
import { CATCHUP_MODES, FIRE_STATUSES, OVERLAPS, TRIGGER_KINDS } from "./trigger.ts";

/* Bodies, queries and answers of the routes of triggers (control, section 3, rules 33 and 34). */

const kind = v.picklist(TRIGGER_KINDS);

/** Query of `GET /api/triggers`. */
export const TriggersQuery = v.object({
  ...PageQuery.entries,
  path: v.exactOptional(v.pipe(storableText(CATALOG_PATH_MAX), v.description("Catalog path of the playbook."))),
  name: v.exactOptional(v.pipe(storableText(128), v.description("Name of the trigger."))),
  kind: v.exactOptional(kind),
  enabled: v.exactOptional(v.picklist(["true", "false"])),
  sort: v.exactOptional(
    v.pipe(
      v.literal("next", "must be next"),
      v.description("`next`: those that fire at a time, the soonest first, in one page. Default: by path and name."),
    ),
  ),
});

/** One trigger of a list. */
export const TriggerItem = v.object({
  trigger_id: IdText,
  path: v.pipe(v.string(), v.description("The playbook that it starts.")),
  name: v.string(),
  kind,
  enabled: v.boolean(),
  last_fire: v.pipe(v.nullable(Timestamp), v.description("When it last started an execution.")),
  next_fire: v.pipe(v.nullable(Timestamp), v.description("Its next time; null where it has none.")),
});
export type TriggerItem = v.InferOutput<typeof TriggerItem>;

/** Answer of `GET /api/triggers`, in the order of paths and names. */
export const TriggersAnswer = v.object({ triggers: v.array(TriggerItem), next_cursor: NextCursor });
export type TriggersAnswer = v.InferOutput<typeof TriggersAnswer>;

/** Answer of `GET /api/triggers/{trigger_id}`, and to enabling and disabling. */
export const TriggerAnswer = v.object({
  ...TriggerItem.entries,
  document: v.pipe(v.string(), v.description("Catalog path of the document that it stands in.")),
  version: VersionNumber,
  active_since: v.pipe(Timestamp, v.description("Since when it is there: intervals are counted from then.")),
  overlap: v.picklist(OVERLAPS),
  catchup: v.object({ mode: v.picklist(CATCHUP_MODES), window_ms: v.exactOptional(v.number()) }),
  section: v.pipe(v.record(v.string(), v.unknown()), v.description("What the document says under its kind.")),
  input: v.record(v.string(), v.unknown()),
});
export type TriggerAnswer = v.InferOutput<typeof TriggerAnswer>;

/** Body of `POST /api/triggers/{trigger_id}/enable` and `…/disable`: nothing is read from it. */
export const TriggerChangeBody = v.object({});

/** Body of `POST /api/triggers/{trigger_id}/fire`: nothing is read from it. */
export const FireBody = v.object({});

/** What has become of a fire (control, rule 34). */
export const FireItem = v.object({
  fire_id: IdText,
  due_at: v.pipe(Timestamp, v.description("The time that it is for, or when what it is for came.")),
  fired_at: Timestamp,
  status: v.picklist(FIRE_STATUSES),
  execution_id: v.exactOptional(IdText),
  reason: v.exactOptional(v.pipe(v.string(), v.description("Why nothing was started."))),
});
export type FireItem = v.InferOutput<typeof FireItem>;

/** Answer of `POST /api/triggers/{trigger_id}/fire`. */
export const FireAnswer = v.object({
  fire_id: IdText,
  status: v.picklist(FIRE_STATUSES),
  execution_id: v.exactOptional(IdText),
  reason: v.exactOptional(v.string()),
  duplicate: v.exactOptional(v.pipe(v.literal(true), v.description("The key had fired it before."))),
});
export type FireAnswer = v.InferOutput<typeof FireAnswer>;

/** Most times that `…/next` answers. */
export const NEXT_MAX = 1_000;
const isCount = (text: string) => /^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= NEXT_MAX;

/** Query of `GET /api/triggers/{trigger_id}/next`. */
export const NextQuery = v.object({
  n: v.exactOptional(
    v.pipe(
      v.string(),
      v.check(isCount, `must be a whole number from 1 to ${NEXT_MAX}`),
      v.description(`How many; 10 by default, ${NEXT_MAX} at most.`),
    ),
  ),
  from: v.exactOptional(v.pipe(TimeInput, v.description("After which moment; now by default."))),
});

/** Answer of `GET /api/triggers/{trigger_id}/next`. Jitter is not in it. */
export const NextAnswer = v.object({
  trigger_id: IdText,
  timezone: v.pipe(v.nullable(v.string()), v.description("Zone of the schedule; null of another kind.")),
  next: v.array(Timestamp),
});
export type NextAnswer = v.InferOutput<typeof NextAnswer>;

/** Query of `GET /api/triggers/{trigger_id}/fires`. */
export const FiresQuery = v.object({ ...PageQuery.entries, status: v.exactOptional(v.picklist(FIRE_STATUSES)) });

/** Answer of `GET /api/triggers/{trigger_id}/fires`, newest first. */
export const FiresAnswer = v.object({ fires: v.array(FireItem), next_cursor: NextCursor });
export type FiresAnswer = v.InferOutput<typeof FiresAnswer>;
