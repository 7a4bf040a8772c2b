import { ExecutionSection, SignalSection } from "../../../schema/documents/trigger-document.ts";
import type { WatchedExecutions } from "../../../schema/triggers/trigger.ts";
import { didYouMean } from "../source/hints.ts";
import { field, type Place, textOf } from "../source/place.ts";
import { checkKeys, type Reading } from "../source/reading.ts";

/** Longest name of a trigger or a signal, in characters. */
export const NAME_MAX = 128;

const ENDS = ["COMPLETED", "FAILED", "CANCELLED"];

/** `execution` of a trigger; reports what is wrong with it. */
export function readWatched(reading: Reading, place: Place): WatchedExecutions {
  checkKeys(reading, place, ExecutionSection);
  const path = field(place, "path");
  if (textOf(path)?.trim() === "") reading.report("missing-key", path, "`path` is empty", "name the watched playbooks");
  const status = field(place, "status");
  const places = status === undefined ? [] : Array.isArray(status.value) ? status.items : [status];
  for (const one of places) {
    const written = textOf(one);
    if (written === undefined || ENDS.includes(written)) continue;
    const message = `\`${written}\` is no status with which an execution ends`;
    reading.report("wrong-trigger", one, message, () => didYouMean(written, ENDS) ?? `write ${ENDS.join(", ")}`);
  }
  const statuses = places.flatMap((one) => textOf(one) ?? []);
  return { path: textOf(path) ?? "", status: statuses.length === 0 ? ["COMPLETED"] : [...new Set(statuses)] };
}

/** `signal` of a trigger; reports what is wrong with it. */
export function readSignal(reading: Reading, place: Place): { name: string } {
  checkKeys(reading, place, SignalSection);
  const named = field(place, "name");
  const name = textOf(named) ?? "";
  if (named !== undefined && (name.trim() === "" || name.length > NAME_MAX)) {
    reading.report(
      "wrong-trigger",
      named,
      "`name` of a signal must be a name",
      `a text of at most ${NAME_MAX} characters`,
    );
  }
  return { name };
}
