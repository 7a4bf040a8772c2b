import type { LoopCounters } from "../../engine/state/state.ts";
import type { Style } from "../terminal/style.ts";
import { cleanText, fitText, formatCount, formatDuration, padText, plural, textWidth } from "../terminal/text.ts";
import { CANCELLING, firstLine, loopProgress, SKIP_REASONS } from "./lines.ts";
import type { ExecutionRow, StepRow } from "./run-model.ts";
import { progressText } from "./text.ts";

/** What a tree is drawn for. */
export interface TreeView {
  /** Lines above the steps: whose they are. */
  head?: readonly string[];
  /** Milliseconds since 1970. */
  now: number;
  /** Columns that a line may take. */
  columns: number;
  /** Lines that the tree may take. */
  lines: number;
  style: Style;
  /** A Ctrl-C was pressed. */
  cancelling: boolean;
}

/**
 * The steps of a run as lines, sub-playbooks below the step that called them. If they do not fit, it first drops what is below
 * finished steps, then folds finished steps from the top into one line, then cuts the end.
 */
export function treeLines(root: ExecutionRow, view: TreeView): string[] {
  const entries: Entry[] = [];
  addSteps(entries, root, { depth: 0, within: false, now: view.now });
  const head = (view.head ?? []).map((line) => fitText(line, view.columns));
  const room = Math.max(1, view.lines - head.length - (view.cancelling ? 1 : 0));
  const fitted = fit(entries, room).map(({ words, ...entry }): Line => ({ ...entry, ...words() }));
  const longest = Math.max(0, ...fitted.map(lineWidth));
  const nameWidth = Math.min(longest, NAME_WIDTH_MAX, Math.max(NAME_WIDTH_MIN, Math.floor(view.columns / 2)));
  const lines = [
    ...head.map((line, index) => (index === 0 ? view.style.strong(line) : view.style.dim(line))),
    ...fitted.map((line) => draw(line, nameWidth, view)),
  ];
  if (view.cancelling) lines.push(view.style.notice(fitText(CANCELLING, view.columns)));
  return lines;
}

/** Names are filled up to the longest one, and cut beyond this or half of a narrow terminal. */
const NAME_WIDTH_MAX = 40;
const NAME_WIDTH_MIN = 8;
/** Sub-playbooks of one loop that are shown at a time. */
const CHILDREN_SHOWN = 4;

type RowKind = "running" | "completed" | "failed" | "cancelled" | "skipped" | "waiting" | "note";

interface Entry {
  depth: number;
  kind: RowKind;
  /** Below a step that has ended: dropped first. */
  within: boolean;
  /** Its text. Made only for lines that fit: most of ten thousand steps are not drawn. */
  words(): Words;
}

interface Words {
  name: string;
  duration: string;
  detail: string;
}

interface Place {
  depth: number;
  within: boolean;
  now: number;
}

function addSteps(entries: Entry[], execution: ExecutionRow, place: Place): void {
  for (const row of execution.steps) {
    entries.push(stepEntry(row, place));
    addChildren(entries, row, { ...place, depth: place.depth + 1, within: place.within || row.state.run === null });
  }
}

function addChildren(entries: Entry[], row: StepRow, place: Place): void {
  if (row.state.loop === null) {
    const [child] = row.children.size > 0 ? row.children : [row.lastChild];
    if (child !== undefined) addSteps(entries, child, place);
    return;
  }
  let shown = 0;
  for (const child of row.children) {
    if (shown === CHILDREN_SHOWN) break;
    shown += 1;
    entries.push(childEntry(child, place));
    const active = child.steps.filter((step) => step.state.run !== null);
    for (const step of active) {
      entries.push(stepEntry(step, { ...place, depth: place.depth + 1 }));
      addChildren(entries, step, { ...place, depth: place.depth + 2 });
    }
  }
  if (row.children.size > shown) entries.push(note(`and ${row.children.size - shown} more at a time`, place));
}

function childEntry(child: ExecutionRow, { depth, within, now }: Place): Entry {
  const index = child.iteration === undefined ? "" : `[${child.iteration}] `;
  const words = () => ({
    name: `${index}${cleanText(child.state.path)}`,
    duration: formatDuration(now - child.state.startedAt),
    detail: "",
  });
  return { depth, kind: "running", within, words };
}

function note(name: string, { depth, within }: Omit<Place, "now">): Entry {
  return { depth, kind: "note", within, words: () => ({ name, duration: "", detail: "" }) };
}

function stepEntry(row: StepRow, { depth, within, now }: Place): Entry {
  const kind = kindOf(row);
  const words = () => {
    const { startedAt, endedAt } = row.state;
    const ran = startedAt !== null && kind !== "skipped" && kind !== "waiting";
    const duration = ran ? formatDuration((endedAt ?? now) - startedAt) : "";
    return { name: cleanText(row.name), duration, detail: detailOf(row, kind, now) };
  };
  return { depth, kind, within, words };
}

function kindOf({ state }: StepRow): RowKind {
  if (state.run !== null) return "running";
  if (state.status === "COMPLETED") return "completed";
  if (state.status === "FAILED") return state.error?.kind === "cancelled" ? "cancelled" : "failed";
  return state.status === "SKIPPED" ? "skipped" : "waiting";
}

function detailOf(row: StepRow, kind: RowKind, now: number): string {
  const { state, retry } = row;
  const byHand = state.overridden === undefined ? [] : [overrideText(state.overridden)];
  if (kind === "skipped" && byHand.length > 0) return byHand.join("");
  if (kind === "skipped") return row.skipped === undefined ? "skipped" : `skipped: ${SKIP_REASONS[row.skipped]}`;
  const parts: string[] = [];
  if (kind === "running" && isWaiting(row)) parts.push(`waits: ${cleanText(row.waits?.text ?? "")}`);
  if (state.loop !== null) {
    parts.push(loopProgress(state.loop));
    if (kind === "running" && state.startedAt !== null) parts.push(...loopPace(state.loop, now - state.startedAt));
  } else if (kind === "running" && retry !== undefined) {
    const left = (retry.at ?? now) - now;
    const when = left > 0 ? ` in ${formatDuration(left)}` : "";
    const why = retry.error === undefined ? "" : ` after: ${firstLine(retry.error.message)}`;
    parts.push(`attempt ${retry.run}${when}${why}`);
  } else if (row.attempts > 1) parts.push(plural(row.attempts, "attempt"));
  if (row.progress !== undefined) parts.push(progressText(row.progress.numbers));
  if (state.runs > 1) parts.push(`run ${state.runs}`);
  parts.push(...byHand, ...iterationsByHand(state));
  // The message that a step failed by hand has by itself says the same.
  const isSaid = byHand.length > 0 && state.error?.code === "OVERRIDDEN";
  if (kind === "failed" && !isSaid) parts.push(firstLine(state.error?.message ?? ""));
  if (kind === "cancelled") parts.push("cancelled");
  return parts.join("  ");
}

const ENDED = { skip: "skipped", complete: "completed", fail: "failed" } as const;

/** `skipped by olga: the source is gone`. */
function overrideText({ action, by, reason }: NonNullable<StepRow["state"]["overridden"]>): string {
  return `${ENDED[action]} by ${by === undefined ? "hand" : cleanText(by)}: ${firstLine(reason)}`;
}

/** `iteration 17 skipped by olga: the file is broken`, or how many. */
function iterationsByHand({ iterationsByHand: ended = [] }: StepRow["state"]): string[] {
  const [first] = ended;
  if (first === undefined) return [];
  if (ended.length === 1) return [`iteration ${first.iteration} ${overrideText(first)}`];
  return [`${plural(ended.length, "iteration")} ended by hand`];
}

/** The reason is valid while the command has no worker. */
function isWaiting({ waits, execution }: StepRow): boolean {
  return waits !== undefined && execution.state.commands[waits.commandId]?.worker === null;
}

/** Shortest time for a meaningful rate. */
const PACE_MS = 2_000;

/** A loop's rate, and the remaining time at that rate: `120/s`, `about 13m 05s left`. */
function loopPace({ total, done }: LoopCounters, ranMs: number): string[] {
  if (ranMs < PACE_MS || done === 0) return [];
  const perSecond = (1_000 * done) / ranMs;
  const rate = perSecond >= 10 ? formatCount(Math.round(perSecond)) : perSecond.toFixed(1);
  const parts = perSecond >= 0.1 ? [`${rate}/s`] : [`${(60 * perSecond).toFixed(1)}/min`];
  if (total !== null && total > done) parts.push(`about ${formatDuration((1_000 * (total - done)) / perSecond)} left`);
  return parts;
}

function fit(entries: readonly Entry[], lines: number): readonly Entry[] {
  if (entries.length <= lines) return entries;
  const outer = entries.filter((entry) => !entry.within);
  if (outer.length <= lines) return outer;
  const folded = fold(outer, outer.length - lines + 1);
  if (folded.length <= lines) return folded;
  const rest = folded.length - lines + 1;
  return [...folded.slice(0, lines - 1), note(`… ${plural(rest, "more line")}`, { depth: 0, within: false })];
}

/** Folds the first `count` completed or skipped entries into one line. Failed ones stay visible. */
function fold(entries: readonly Entry[], count: number): Entry[] {
  const kept: Entry[] = [];
  const folded = { completed: 0, skipped: 0 };
  for (const entry of entries) {
    const isQuiet = entry.kind === "completed" || entry.kind === "skipped";
    if (isQuiet && folded.completed + folded.skipped < count) folded[entry.kind as "completed" | "skipped"] += 1;
    else kept.push(entry);
  }
  if (folded.completed + folded.skipped === 0) return kept;
  const skipped = folded.skipped === 0 ? "" : `, ${folded.skipped} skipped`;
  const name = `${plural(folded.completed, "step")} completed${skipped}`;
  return [{ depth: 0, kind: "completed", within: false, words: () => ({ name, duration: "", detail: "" }) }, ...kept];
}

/** An entry with what it says. */
type Line = Omit<Entry, "words"> & Words;

function lineWidth(line: Line): number {
  return line.duration === "" && line.detail === "" ? 0 : 2 * line.depth + textWidth(line.name);
}

const MARKS: Readonly<Record<Exclude<RowKind, "running">, string>> = {
  completed: "✓",
  failed: "✗",
  cancelled: "■",
  skipped: "−",
  waiting: "·",
  note: " ",
};

const SPINNER = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/** How long one picture of the spinner stays. */
const SPINNER_MS = 100;

/** Cuts the plain text to the width, then colours it: escape sequences take no columns. */
function draw(line: Line, nameWidth: number, { now, columns, style }: TreeView): string {
  const { kind, depth, duration, detail } = line;
  const spinner = SPINNER[Math.floor(now / SPINNER_MS) % SPINNER.length] ?? "";
  const indent = "  ".repeat(depth);
  const isBare = duration === "" && detail === "";
  const name = isBare ? line.name : padText(fitText(line.name, nameWidth - 2 * depth), nameWidth - 2 * depth);
  const rest = isBare ? "" : `  ${duration.padStart(DURATION_WIDTH)}${detail === "" ? "" : `  ${detail}`}`;
  const text = fitText(`${indent}${kind === "running" ? spinner : MARKS[kind]} ${name}${rest}`, columns);
  if (kind === "skipped" || kind === "note" || kind === "waiting") return style.dim(text);
  const [head, tail] = [text.slice(0, indent.length + 1), text.slice(indent.length + 1)];
  const named = tail.slice(0, name.length + 1);
  const paintRest = kind === "failed" ? style.bad : style.dim;
  return `${PAINTS[kind](style)(head)}${named}${paintRest(tail.slice(name.length + 1))}`;
}

/** Room for `59m 59s`. */
const DURATION_WIDTH = 7;

type Painted = "running" | "completed" | "failed" | "cancelled";

const PAINTS: Readonly<Record<Painted, (style: Style) => (text: string) => string>> = {
  running: (style) => style.busy,
  completed: (style) => style.good,
  failed: (style) => style.bad,
  cancelled: (style) => style.notice,
};
