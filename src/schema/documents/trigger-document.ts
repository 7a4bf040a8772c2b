import * as v from "valibot";
import { CATCHUP_MODES, OVERLAPS } from "../triggers/trigger.ts";
import { anyMap, anything, key, map, required, text } from "./document-forms.ts";
import { NatsSection, WebhookSection } from "./trigger-sources.ts";

/*
 * Triggers as authors write them (control, section 3): entries of `triggers` in a playbook, and documents of kind Trigger, which have the same
 * keys at their top.
 */

const duration = v.union([v.number(), text]);
const DURATION = "A duration such as `90s`, `15m`, `1h30m` or `2d`, or a number of seconds";

/** `schedule` of a trigger. */
export const ScheduleSection = map({
  cron: key(
    v.union([text, v.array(text)]),
    "Five fields (minute, hour, day of month, month, day of week), six with seconds first, or `@daily` and the like; one or several.",
  ),
  every: key(duration, `${DURATION}, at least 1s: from one fire to the next, instead of \`cron\`.`),
  timezone: key(text, "Zone of the clock, such as `Europe/Berlin`; default UTC."),
  jitter: key(duration, `${DURATION}: each fire is put off by a part of it.`),
});

/** `execution` of a trigger. */
export const ExecutionSection = map({
  path: required(text, "Path of the watched playbooks: `*` stands for anything within a segment, `**` for anything."),
  status: key(
    v.union([text, v.array(text)]),
    "The ends that it fires for: COMPLETED (default), FAILED or CANCELLED, one or several.",
  ),
});

/** `signal` of a trigger. */
export const SignalSection = map({ name: required(text, "Name of the keyed signal.") });

/** `catchup` of a trigger. */
export const CatchupSection = map({
  mode: required(v.picklist(CATCHUP_MODES), "Which missed times are made up for."),
  window: key(duration, `${DURATION}: what was missed longer ago stays missed.`),
});

/** Keys that a trigger has wherever it stands. */
const TRIGGER_KEYS = {
  schedule: key(ScheduleSection, "Fires at times."),
  webhook: key(WebhookSection, "Fires for calls of `/hooks/<path>`."),
  execution: key(ExecutionSection, "Fires when another execution ends."),
  nats: key(NatsSection, "Fires for messages of a JetStream stream."),
  signal: key(SignalSection, "Fires for a keyed signal."),
  catchup: key(CatchupSection, "What happens with times of a schedule that were missed. Default: nothing."),
  overlap: key(v.picklist(OVERLAPS), "What happens while an execution of it is open. Default allow."),
  input: key(anyMap, "Inputs of the execution, with templates over `trigger` and what the kind brings."),
};

/** One entry of `triggers`: exactly one of the five sections. */
export const TriggerEntry = map({
  name: required(text, "Name, unique among the triggers of a playbook."),
  ...TRIGGER_KEYS,
});

/** `metadata` of a trigger document. */
export const TriggerMetadata = map({
  name: required(text, "Name of the trigger."),
  path: key(text, "Catalog path of the document; default the name."),
  description: key(anything, "What the trigger is for."),
  version: key(anything, "Free."),
  tags: key(anything, "Free."),
  labels: key(anything, "Free."),
});

/** The document. */
export const TriggerDocument = map({
  apiVersion: required(v.pipe(text, v.regex(/^[^\s/]\S*\/v2$/)), "Vendor-prefixed version: `<vendor>/v2`."),
  kind: required(v.literal("Trigger"), "Trigger."),
  metadata: required(TriggerMetadata, "Name and path."),
  playbook: required(text, "Catalog path of the playbook that it starts."),
  ...TRIGGER_KEYS,
});
