import { formProblem } from "../../schema/rules/clean-json-schema.ts";
import { durationMs } from "../../schema/rules/durations.ts";
import { APPROVAL_TEXTS_MAX, PERSONS_MAX } from "../../schema/words/approval.ts";
import type { Json } from "../../schema/words/json.ts";
import { field, isConstant, isMap, type Place } from "./source/place.ts";
import { checkKey, type Reading } from "./source/reading.ts";

const KEYS = [
  ...["title", "description", "form", "approvers", "required", "rejections"],
  ...["remind_every", "escalate", "notify", "link_login"],
];

/** Reports what an `approval` says that is wrong in every run. */
export function checkApproval(reading: Reading, approval: Place): void {
  const wrong = (place: Place, what: string, hint: string) => reading.report("wrong-wait", place, what, hint);
  if (!isMap(approval)) {
    if (isConstant(approval)) wrong(approval, "`approval` must be a map", "write `approval: {title: Release it?}`");
    return;
  }
  checkKeysOf(reading, approval, KEYS);
  const get = (key: string) => field(approval, key);
  const title = get("title");
  const titleMax = APPROVAL_TEXTS_MAX.title;
  if (title === undefined) wrong(approval, "the approval has no `title`", "write what people are asked for");
  else if (isConstant(title) && !isText(title.value, titleMax))
    wrong(title, "`title` must be a text", `write at most ${titleMax} characters`);
  checkForm(reading, get("form"));
  checkPeople(reading, get("approvers"), ["roles", "users", "not_starter"]);
  for (const key of ["required", "rejections"]) {
    const place = get(key);
    if (place !== undefined && isConstant(place) && !isPersons(place.value))
      wrong(place, `\`${key}\` must be a number of persons`, `write 1 to ${PERSONS_MAX}`);
  }
  checkDuration(reading, get("remind_every"), 1);
  const escalate = get("escalate");
  if (escalate !== undefined) {
    checkKeysOf(reading, escalate, ["after", "to"]);
    const [after, to] = [field(escalate, "after"), field(escalate, "to")];
    checkDuration(reading, after, 0);
    checkPeople(reading, to, ["roles", "users"]);
    if (after === undefined || to === undefined)
      wrong(escalate, "`escalate` must say when and to whom", "write `{after: 1d, to: {roles: [head_of_ops]}}`");
  }
  checkNotify(reading, get("notify"));
}

function checkForm(reading: Reading, form: Place | undefined): void {
  if (form === undefined || (!isMap(form) && !isConstant(form)) || hasTemplate(form.value)) return;
  const problem = formProblem(form.value);
  if (problem !== undefined)
    reading.report(
      "wrong-wait",
      form,
      `\`form\` ${problem}`,
      "write a JSON Schema (2020-12), such as `{type: object}`",
    );
}

/** Whether some text in it is a template: what that gives is not known yet. */
function hasTemplate(value: Json): boolean {
  if (typeof value === "string") return /\{[{%]/.test(value);
  return typeof value === "object" && value !== null && Object.values(value).some((one) => hasTemplate(one as Json));
}

function checkPeople(reading: Reading, people: Place | undefined, keys: readonly string[]): void {
  if (people === undefined) return;
  checkKeysOf(reading, people, keys);
  for (const key of ["roles", "users"]) {
    const place = field(people, key);
    const isList = Array.isArray(place?.value) && place.value.every((name) => typeof name === "string" && name !== "");
    if (place !== undefined && typeof place.value !== "string" && !isList)
      reading.report("wrong-wait", place, `\`${key}\` must be a list of names`, `write \`${key}: [name]\``);
  }
}

function checkNotify(reading: Reading, notify: Place | undefined): void {
  if (notify === undefined) return;
  checkKeysOf(reading, notify, ["playbook", "input", "to"]);
  const playbook = field(notify, "playbook");
  if (typeof playbook?.value === "string" && playbook.value.trim() !== "") return;
  const hint = 'write `notify: {playbook: ops/tell, input: {text: "{{ approval.title }}: {{ approval.url }}"}}`';
  reading.report("wrong-wait", playbook ?? notify, "`notify` must name a playbook", hint);
}

function checkDuration(reading: Reading, place: Place | undefined, leastMs: number): void {
  if (place === undefined || !isConstant(place)) return;
  const ms = durationMs(place.value);
  if (ms !== undefined && ms >= leastMs) return;
  const hint = "write 30s, 1h30m, 2d, or a number of seconds";
  reading.report(
    "wrong-wait",
    place,
    `\`${place.key}\` must be a duration, not \`${JSON.stringify(place.value)}\``,
    hint,
  );
}

/** Reports keys that mean nothing, and what is no map. */
function checkKeysOf(reading: Reading, place: Place, known: readonly string[]): void {
  for (const [key, entry] of place.fields) checkKey(reading, key, entry, known);
  if (typeof place.value !== "object" && isConstant(place))
    reading.report("wrong-wait", place, `\`${place.key}\` must be a map`, `it has ${known.join(", ")}`);
}

function isText(value: unknown, max: number): boolean {
  return typeof value === "string" && value.trim() !== "" && value.length <= max;
}

function isPersons(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= PERSONS_MAX;
}
