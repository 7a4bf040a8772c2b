import type { ParkedWork } from "../../schema/words/command.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";
import { cleanText } from "../terminal/text.ts";

/** How far a task is, for one line: `12,000 rows` where rows are written, else each number with its name. */
export function progressText(numbers: Readonly<JsonObject>): string {
  const rows = own(numbers, "rows_written");
  if (typeof rows === "number") return `${numberText(rows)} rows`;
  return Object.entries(numbers)
    .flatMap(([name, number]) => (typeof number === "number" ? [`${numberText(number)} ${nameText(name)}`] : []))
    .join(", ");
}

/** What a parked step waits for: `until 2026-01-31T12:00:00.000Z`, `for signal 'paid'`. */
export function awaitedText({ wait, wake_at: until }: Pick<ParkedWork, "wait" | "wake_at">): string {
  const of = wait.kind === "signal" && wait.key !== undefined ? ` with key '${wait.key}'` : "";
  const what =
    wait.kind === "signal"
      ? [`for signal '${wait.name}'${of}`]
      : wait.kind === "approval"
        ? [`for an approval: ${wait.title}`]
        : [];
  return [...what, ...(until === undefined ? [] : [`until ${until}`])].join(", at most ");
}

/** `12,000`; `0.25`. */
function numberText(number: number): string {
  return number.toLocaleString("en");
}

function nameText(name: string): string {
  return cleanText(name).replaceAll("_", " ");
}
