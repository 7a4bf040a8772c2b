import type { Percentiles } from "../../platform/telemetry/histogram.ts";
import type { StatsAnswer, Totals } from "../../schema/api/overview.ts";
import { STATS_ROUTES } from "../../schema/routes/system.ts";
import { isPathPattern } from "../../schema/rules/execution-filter.ts";
import { defined } from "../../schema/words/defined.ts";
import { type CliInput, EXIT, textOption } from "../command-line/command.ts";
import { momentOf } from "../command-line/list-options.ts";
import { openServer } from "../server/open-server.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { fitToTerminal, writeTable } from "../terminal/table.ts";
import { cleanText, formatCount, formatDuration, jsonText, plural } from "../terminal/text.ts";

/** Steps, and playbooks, that are shown; `--json` has 100 of each. */
const SHOWN_MAX = 10;
/** Columns that a line of bars takes at most: more buckets share one. */
const BARS_MAX = 60;
const BARS = "▁▂▃▄▅▆▇█";

/** `flow stats`: how executions ended over time. */
export async function showStats(input: CliInput): Promise<number> {
  const { options, io } = input;
  const [path] = input.arguments;
  const now = Date.now();
  const since = textOption(options, "since") ?? "24h";
  const until = textOption(options, "until");
  const query = {
    ...defined({ path, bucket: textOption(options, "bucket"), sort: textOption(options, "sort") }),
    since: momentOf(since, now),
    ...(until !== undefined && { until: momentOf(until, now, "--until") }),
    group: "path",
  };
  const { call } = await openServer(input);
  // The server checks them: the contract's types are those of valid queries.
  const answer = await call(STATS_ROUTES.stats, { query } as Parameters<typeof call<typeof STATS_ROUTES.stats>>[1]);
  if (options["json"] === true) {
    io.stdout.write(`${jsonText(answer)}\n`);
    return EXIT.ok;
  }
  const style = styleFor(io.stdout, io, options["no-color"] === true);
  io.stdout.write(`${headOf(path, answer, style).join("\n")}\n`);
  const fit = fitToTerminal(io, ["PLAYBOOK", "STEP"]);
  const isOne = path !== undefined && !isPathPattern(path);
  const paths = isOne ? [] : (answer.paths ?? []).slice(0, SHOWN_MAX);
  if (paths.length > 0) {
    io.stdout.write("\n");
    const headings = ["PLAYBOOK", "ENDED", "FAILED", "COMPLETED", "P50", "P95", "WAITED P95"];
    writeTable(io.stdout, headings, paths.map(rowOf), fit);
  }
  const steps = answer.steps.slice(0, SHOWN_MAX);
  if (steps.length > 0) {
    io.stdout.write("\n");
    const cells = steps.map(({ path: of, step, count, failed, p95 }) => [
      step,
      ...(isOne ? [] : [of]),
      ...[formatCount(count), formatCount(failed), formatDuration(p95)],
    ]);
    writeTable(io.stdout, ["STEP", ...(isOne ? [] : ["PLAYBOOK"]), "RUNS", "FAILED", "P95"], cells, fit);
  }
  return EXIT.ok;
}

function headOf(
  path: string | undefined,
  { total, buckets, bucket, since, until }: StatsAnswer,
  style: Style,
): string[] {
  const { counts } = total;
  const ended = endedOf(total);
  const ends = [
    `${plural(ended, "execution")} ended`,
    `${formatCount(counts.FAILED)} failed`,
    `${formatCount(counts.CANCELLED)} cancelled`,
    ...(total.success_rate === null ? [] : [`${percent(total.success_rate)} completed`]),
  ];
  const lines = [
    `${style.strong(cleanText(path ?? "all playbooks"))}  ${timeOf(since)} – ${timeOf(until)} UTC`,
    ends.join(", "),
  ];
  if (ended === 0) return lines;
  const bars = (of: (one: Pick<Totals, "counts">) => number) => barsOf(buckets.map(of));
  lines.push("", `ended   ${bars(endedOf)}  ${style.dim(`each bar ${widthOf(buckets.length, bucket)}`)}`);
  if (counts.FAILED > 0) lines.push(`failed  ${style.bad(bars(({ counts: { FAILED } }) => FAILED))}`);
  lines.push("", `took    ${percentilesText(total.duration)}`, `waited  ${percentilesText(total.waiting)}`);
  return lines;
}

function rowOf({ path, ...total }: NonNullable<StatsAnswer["paths"]>[number]): string[] {
  const { counts, success_rate: rate, duration, waiting } = total;
  return [
    path,
    formatCount(endedOf(total)),
    formatCount(counts.FAILED),
    rate === null ? "-" : percent(rate),
    ...(duration === null ? ["-", "-"] : [formatDuration(duration.p50), formatDuration(duration.p95)]),
    waiting === null ? "-" : formatDuration(waiting.p95),
  ];
}

function endedOf({ counts }: Pick<Totals, "counts">): number {
  return counts.COMPLETED + counts.FAILED + counts.CANCELLED;
}

/** One that is not all of them is not shown as 100 %. */
function percent(share: number): string {
  return `${share === 1 ? "100" : (Math.floor(share * 1_000) / 10).toFixed(1)} %`;
}

function percentilesText(found: Percentiles | null): string {
  if (found === null) return "-";
  return `p50 ${formatDuration(found.p50)}  p95 ${formatDuration(found.p95)}  p99 ${formatDuration(found.p99)}`;
}

function timeOf(text: string): string {
  return text.slice(0, 16).replace("T", " ");
}

/** Buckets that one bar stands for. */
function perBar(count: number): number {
  return Math.ceil(count / BARS_MAX);
}

function widthOf(count: number, bucket: string): string {
  const each = perBar(count);
  return each === 1 ? bucket : `${each} × ${bucket}`;
}

/** A bar for each number, or for the sum of several; none for 0. */
function barsOf(numbers: readonly number[]): string {
  const each = perBar(numbers.length);
  const sums = Array.from({ length: Math.ceil(numbers.length / each) }, (_, index) =>
    numbers.slice(index * each, (index + 1) * each).reduce((sum, number) => sum + number, 0),
  );
  const most = Math.max(...sums, 1);
  return sums.map((sum) => (sum === 0 ? " " : (BARS[Math.ceil((sum / most) * BARS.length) - 1] ?? ""))).join("");
}
