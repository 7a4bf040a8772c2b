import { TriggerDocument, TriggerEntry, TriggerMetadata } from "../../../schema/documents/trigger-document.ts";
import { OVERLAPS, TRIGGER_KINDS, type Trigger, type TriggerKind } from "../../../schema/triggers/trigger.ts";
import { isJsonObject, type JsonObject } from "../../../schema/words/json.ts";
import { field, isMap, type Place, textOf } from "../source/place.ts";
import { checkKeys, type Reading } from "../source/reading.ts";
import { readNats } from "./nats.ts";
import { readCatchup, readSchedule } from "./schedule.ts";
import { NAME_MAX, readSignal, readWatched } from "./sources.ts";
import { readWebhook } from "./webhook.ts";

/** Triggers of one document. Registering writes a row for each. */
const TRIGGERS_MAX = 100;

/** What the templates of a trigger can read beside `trigger` and `env`, by its kind (control, rule 39). */
const TRIGGER_NAMES: Readonly<Record<TriggerKind, readonly string[]>> = {
  schedule: [],
  webhook: ["body", "headers", "query", "method"],
  execution: [],
  nats: ["body", "headers", "subject", "message"],
  signal: ["signal"],
};

/** `triggers` of a playbook; reports what is wrong with them. */
export function readTriggers(reading: Reading, place: Place): Trigger[] {
  if (place.items.length > TRIGGERS_MAX) {
    const message = `the playbook has ${place.items.length} triggers; at most ${TRIGGERS_MAX} are allowed`;
    reading.report("wrong-trigger", place, message, "let one trigger start a playbook that decides");
    return [];
  }
  const names = new Set<string>();
  return place.items.filter(isMap).flatMap((item) => {
    checkKeys(reading, item, TriggerEntry);
    const named = field(item, "name");
    const name = textOf(named);
    if (named === undefined || name === undefined) return [];
    checkName(reading, named, name);
    if (names.has(name)) {
      reading.report("duplicate-name", named, `two triggers are called \`${name}\``, "rename one of them");
    }
    names.add(name);
    return readTrigger(reading, item, name);
  });
}

/** The trigger of a document of kind Trigger, whose shape was checked, and the path of its playbook as written. */
export function readTriggerDocument(reading: Reading, root: Place): { playbook: string; trigger?: Trigger } {
  checkKeys(reading, root, TriggerDocument);
  const metadata = field(root, "metadata");
  checkKeys(reading, metadata, TriggerMetadata);
  const version = textOf(field(root, "apiVersion"));
  if (version !== undefined && !/^[^\s/]\S*\/v2$/.test(version)) {
    const message = `apiVersion \`${version}\` is not supported`;
    reading.report("wrong-api-version", field(root, "apiVersion"), message, "write `<vendor>/v2`");
  }
  const named = field(metadata, "name");
  const name = textOf(named) ?? "";
  if (named !== undefined) checkName(reading, named, name);
  const [trigger] = readTrigger(reading, root, name);
  return { playbook: textOf(field(root, "playbook")) ?? "", ...(trigger === undefined ? {} : { trigger }) };
}

function checkName(reading: Reading, place: Place, name: string): void {
  if (name.trim() === "")
    reading.report("missing-key", place, "the trigger's name is empty", "give the trigger a name");
  else if (name.length > NAME_MAX) {
    reading.report("wrong-trigger", place, `the trigger's name has ${name.length} characters`, `${NAME_MAX} at most`);
  }
}

/** One trigger, or none where nothing says what it fires for. */
function readTrigger(reading: Reading, place: Place, name: string): Trigger[] {
  const [kind, other] = TRIGGER_KINDS.filter((one) => field(place, one) !== undefined);
  const wrong = (at: Place, what: string, hint: string) => reading.report("wrong-trigger", at, what, hint);
  const hint = `write one of ${TRIGGER_KINDS.map((one) => `\`${one}\``).join(", ")}`;
  if (kind === undefined) {
    wrong(place, `the trigger \`${name}\` does not say what it fires for`, hint);
    return [];
  }
  if (other !== undefined) {
    wrong(
      field(place, other) ?? place,
      `the trigger \`${name}\` has both \`${kind}\` and \`${other}\``,
      "make two of it",
    );
  }
  const catchup = field(place, "catchup");
  if (catchup !== undefined && kind !== "schedule") {
    wrong(catchup, `\`catchup\` is about a schedule, and \`${name}\` has none`, "leave it out");
  }
  const input = field(place, "input");
  if (input !== undefined) reading.apart.push({ place: input, names: namesOf(kind) });
  return [
    {
      name,
      kind,
      ...readSection(reading, kind, field(place, kind)),
      catchup: readCatchup(reading, catchup),
      overlap: OVERLAPS.find((one) => one === field(place, "overlap")?.value) ?? "allow",
      input: mapOf(input),
    },
  ];
}

/** All names that templates of a trigger of this kind can read. */
export function namesOf(kind: TriggerKind): ReadonlySet<string> {
  return new Set(["trigger", "env", ...TRIGGER_NAMES[kind]]);
}

function readSection(reading: Reading, kind: TriggerKind, place: Place | undefined): Partial<Trigger> {
  if (place === undefined || !isMap(place)) return {};
  switch (kind) {
    case "schedule":
      return { schedule: readSchedule(reading, place) };
    case "execution":
      return { execution: readWatched(reading, place) };
    case "signal":
      return { signal: readSignal(reading, place) };
    case "webhook":
      return { webhook: readWebhook(reading, place, namesOf(kind)) };
    case "nats":
      return { nats: readNats(reading, place, namesOf(kind)) };
  }
}

function mapOf(place: Place | undefined): JsonObject {
  return place !== undefined && isJsonObject(place.value) ? place.value : {};
}
