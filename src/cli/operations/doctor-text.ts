import * as v from "valibot";
import { Finding, type Outcome } from "../../schema/api/doctor.ts";
import type { CliIo } from "../command-line/command.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { fitToTerminal, writeTable } from "../terminal/table.ts";
import { cleanText, formatAgo, formatCount, plural } from "../terminal/text.ts";

/** What `detect` found, also from older servers. */
const Detection = v.looseObject({
  findings: v.array(Finding),
  checks: v.exactOptional(v.array(v.string())),
  counts: v.exactOptional(v.record(v.string(), v.number())),
});

/** What `reachability` found. */
const Reachability = v.looseObject({
  targets: v.array(
    v.looseObject({
      target: v.string(),
      address: v.string(),
      reachable: v.nullable(v.boolean()),
      ms: v.number(),
      why: v.exactOptional(v.string()),
      what_to_do: v.exactOptional(v.string()),
    }),
  ),
});

/** Prints an outcome for people; returns false for one without a text form. */
export function writeOutcome({ data }: Outcome, io: CliIo): boolean {
  const style = styleFor(io.stdout, io, false);
  const detected = v.safeParse(Detection, data);
  if (detected.success) {
    writeFindings(detected.output, style, io);
    return true;
  }
  const reached = v.safeParse(Reachability, data);
  if (reached.success) writeTargets(reached.output, style, io);
  return reached.success;
}

function writeFindings(
  { findings, checks, counts = {} }: v.InferOutput<typeof Detection>,
  style: Style,
  io: CliIo,
): void {
  const now = Date.now();
  const write = (line: string) => io.stdout.write(`${line}\n`);
  const looked = checks === undefined ? "" : `, ${plural(checks.length, "check")} made`;
  if (findings.length === 0) write(`${style.good("✓")} nothing is wrong${looked}`);
  else {
    const rows = findings.map(({ level, since, what }, index) => [
      String(index + 1),
      level,
      since === null ? "-" : formatAgo(Date.parse(since), now),
      what,
    ]);
    const paint = (cell: string, column: number) => {
      if (column !== LEVEL_COLUMN) return cell;
      return cell.trim() === "anomaly" ? style.bad(cell) : style.notice(cell);
    };
    writeTable(io.stdout, HEADINGS, rows, { paint, ...fitToTerminal(io, ["WHAT"]) });
    for (const [index, finding] of findings.entries()) writeFinding(index + 1, finding, style, write);
  }
  const countTexts = Object.entries(counts).map(
    ([name, count]) => `${name.replaceAll("_", " ")} ${formatCount(count)}`,
  );
  if (countTexts.length > 0) write(style.dim(`\n${cleanText(countTexts.join(", "))}`));
}

const HEADINGS = ["#", "LEVEL", "SINCE", "WHAT"];
const LEVEL_COLUMN = HEADINGS.indexOf("LEVEL");

/** A finding in full: the table may cut its text. */
function writeFinding(number: number, finding: Finding, style: Style, write: (line: string) => void): void {
  const { what, why_it_matters: why, what_to_do: todo, command, execution_ids: ids = [] } = finding;
  write("");
  write(`${style.strong(String(number))}  ${cleanText(what)}`);
  write(`   ${cleanText(why)}`);
  write(`   ${cleanText(todo)}`);
  if (ids.length > 0) write(style.dim(`   executions: ${ids.slice(0, IDS_SHOWN).map(cleanText).join(" ")}`));
  if (command !== null) write(`   ${style.dim("$")} ${cleanText(command)}`);
}

/** Executions that a finding names here; JSON has more. */
const IDS_SHOWN = 5;

function writeTargets({ targets }: v.InferOutput<typeof Reachability>, style: Style, io: CliIo): void {
  const words = (reachable: boolean | null) => (reachable === null ? "unknown" : reachable ? "answers" : "away");
  const rows = targets.map(({ target, address, reachable, ms }) => [target, words(reachable), `${ms}ms`, address]);
  const paint = (cell: string, column: number) => {
    if (column !== 1) return cell;
    if (cell.trim() === "answers") return style.good(cell);
    return cell.trim() === "away" ? style.bad(cell) : style.notice(cell);
  };
  writeTable(io.stdout, ["TARGET", "STATE", "TIME", "ADDRESS"], rows, { paint, ...fitToTerminal(io, ["ADDRESS"]) });
  for (const { target, why, what_to_do: todo } of targets) {
    if (why !== undefined) io.stdout.write(`\n${target}: ${cleanText(why)}\n`);
    if (todo !== undefined) io.stdout.write(`   ${cleanText(todo)}\n`);
  }
}
