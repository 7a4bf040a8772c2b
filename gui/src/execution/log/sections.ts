import { durationText } from "../../parts/time.ts";
import type { TraceEvent } from "../traced/trace-event.ts";

/** How grave a line is, as its own words say. */
export type Level = "error" | "warn" | "info" | "debug";

/** One line of a log. */
export interface LogLine {
  text: string;
  level: Level;
  /** When it was reported, milliseconds since 1970. */
  at: number;
  /** It is flow's own, not the task's. */
  isOwn: boolean;
}

/** What one run of a task wrote. */
export interface LogSection {
  key: string;
  step: string;
  task: string;
  commandId: string;
  iteration: number | undefined;
  run: number;
  /** From its beginning, as far as it is known, to its end or its newest line. */
  from: number;
  to: number;
  /** The event of its end, which has all of its lines; undefined while it runs. */
  endId: number | undefined;
  isFailed: boolean;
  lines: LogLine[];
  /** Lines that were not kept, before those that were. */
  dropped: number;
  /** Its lines were left out because they are long: they are read with the event of its end. */
  isOmitted: boolean;
  /** Executions that it called. */
  calls: string[];
}

/** The sections of an execution's log, in the order in which they began. */
export function logSectionsOf(events: readonly TraceEvent[], until = Number.POSITIVE_INFINITY): LogSection[] {
  const sections = new Map<string, LogSection>();
  for (const event of [...events].sort((one, other) => one.id - other.id)) {
    if (event.id > until || event.commandId === undefined) continue;
    if (event.type === "task.progress") takeProgress(sectionOf(sections, event, event.commandId), event);
    else if (event.type === "task.done") takeEnd(sectionOf(sections, event, event.commandId), event);
    else if (event.type === "call.error" || event.type === "call.done") {
      takeCall(sectionOf(sections, event, event.commandId), event);
    }
  }
  return [...sections.values()].sort((one, other) => one.from - other.from);
}

/** The sections, and one for each open call: what it called has lines before the call has any of its own. */
export function withOpenCalls(
  sections: readonly LogSection[],
  commands: readonly { command_id: string; step: string; issued_at?: string; children?: readonly string[] }[],
): LogSection[] {
  const calling = commands.filter(({ children = [] }) => children.length > 0);
  const made = calling.flatMap(({ command_id, step, issued_at, children = [] }): LogSection[] => {
    if (sections.some((section) => section.commandId === command_id && section.calls.length > 0)) return [];
    const at = issued_at === undefined ? 0 : Date.parse(issued_at);
    const of = {
      key: `${command_id}//${step}/1`,
      step,
      task: step,
      commandId: command_id,
      iteration: undefined,
      run: 1,
    };
    const times = { from: at, to: at, endId: undefined, isFailed: false };
    return [{ ...of, ...times, lines: [], dropped: 0, isOmitted: false, calls: [...children] }];
  });
  return [...sections, ...made].sort((one, other) => one.from - other.from);
}

/** A section with the lines that its end has. */
export function withWholeLog(section: LogSection, end: TraceEvent): LogSection {
  const whole: LogSection = { ...section, lines: [], isOmitted: false };
  takeEnd(whole, end);
  return { ...whole, isOmitted: false };
}

function sectionOf(sections: Map<string, LogSection>, event: TraceEvent, commandId: string): LogSection {
  const start = `${commandId}/${event.iteration ?? ""}/${event.task}`;
  const last = [...sections.values()].findLast((section) => section.key.startsWith(`${start}/`));
  const isNext = last === undefined || (event.run !== undefined ? last.run < event.run : last.endId !== undefined);
  if (!isNext) return last;
  const run = event.run ?? (last?.run ?? 0) + 1;
  const made: LogSection = {
    key: `${start}/${run}`,
    step: event.step,
    task: event.task,
    commandId,
    iteration: event.iteration,
    run,
    from: event.at - event.durationMs,
    to: event.at,
    endId: undefined,
    isFailed: false,
    lines: [],
    dropped: 0,
    isOmitted: false,
    calls: [],
  };
  sections.set(made.key, made);
  return made;
}

function takeProgress(section: LogSection, { log, at }: TraceEvent): void {
  section.to = at;
  if (log === undefined) return;
  section.dropped = Math.max(section.dropped, section.lines.length === 0 ? (log.from ?? 0) : section.dropped);
  section.lines.push(...log.lines.map((text) => lineOf(text, at)));
}

/** At its end a run has the lines that are kept; when they were reported is known of those that came before. */
function takeEnd(section: LogSection, event: TraceEvent): void {
  const { log, at, durationMs } = event;
  const known = section.lines.filter(({ isOwn }) => !isOwn);
  const own = section.lines.filter(({ isOwn }) => isOwn);
  section.from = Math.min(section.from, at - durationMs);
  section.to = at;
  section.endId = event.id;
  section.isFailed = event.isFailed;
  if (event.isOmitted) section.isOmitted = true;
  else if (log !== undefined) {
    const shift = log.dropped - section.dropped;
    section.lines = [...log.lines.map((text, index) => lineOf(text, known[index + shift]?.at ?? at)), ...own];
    section.dropped = log.dropped;
  }
  if (own.length === 0) section.lines.push(...ownLines(event));
}

function takeCall(section: LogSection, event: TraceEvent): void {
  if (event.childId !== undefined && !section.calls.includes(event.childId)) section.calls.push(event.childId);
  if (event.type === "call.error") section.lines.push(...ownLines(event));
}

/** What flow has to say of a run's end: why it failed, and when it is tried again. */
function ownLines({ isFailed, at, code, message, nextRunAt, run = 1 }: TraceEvent): LogLine[] {
  if (!isFailed) return [];
  const lines: LogLine[] = [];
  if (message !== undefined) {
    const text = message.split("\n", 1)[0] ?? "";
    lines.push({
      text: code === undefined || text.startsWith(code) ? text : `${code}: ${text}`,
      level: "error",
      at,
      isOwn: true,
    });
  }
  if (nextRunAt !== undefined) {
    const wait = durationText(Math.max(0, Date.parse(nextRunAt) - at));
    lines.push({ text: `Attempt ${run} failed, trying again in ${wait}`, level: "warn", at, isOwn: true });
  }
  return lines;
}

function lineOf(text: string, at: number): LogLine {
  return { text, level: levelOf(text), at, isOwn: false };
}

/** The level that a line names near its beginning, as most loggers write it. */
export function levelOf(text: string): Level {
  const found = /\b(fatal|critical|error|err|exception|traceback|warning|warn|info|debug|trace)\b/i.exec(
    text.slice(0, 80),
  );
  const word = found?.[1]?.toLowerCase() ?? "info";
  // `error` within a sentence is no level: loggers write it in capitals, in brackets, or as JSON's value.
  const isNamed =
    found !== null &&
    (found[0] === found[0].toUpperCase() || /["[(]$/.test(text.slice(0, found.index)) || found.index === 0);
  if (!isNamed) return "info";
  if (/^(fatal|critical|error|err|exception|traceback)$/.test(word)) return "error";
  if (word.startsWith("warn")) return "warn";
  return word === "info" ? "info" : "debug";
}
