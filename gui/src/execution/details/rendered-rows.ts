import type { RenderedTask } from "../../api/types.ts";

/** One input of a task: as it is written, and what it came to. */
export interface RenderedRow {
  path: string;
  written: unknown;
  rendered: unknown;
  isChanged: boolean;
  /** What is to be known of the value. */
  note: string | undefined;
  isFault: boolean;
}

/** Rows beyond which an input is shown as a whole. */
const ROWS_MAX = 2_000;

/** The inputs of a task place by place, as far down as the playbook has maps and lists. */
export function rowsOf(task: RenderedTask): RenderedRow[] {
  const notes = new Map<string, { note: string; isFault: boolean }>();
  for (const path of task.secret ?? []) notes.set(path, { note: "holds a secret", isFault: false });
  for (const { path, waits_for } of task.unknown ?? []) {
    notes.set(path, { note: `not known here: ${waits_for.join(", ")}`, isFault: false });
  }
  for (const { path, message } of task.errors ?? []) notes.set(path, { note: message, isFault: true });
  const rows: RenderedRow[] = [];
  if (task.rendered === null) {
    const note = "Too long to show here";
    return [{ path: "all", written: task.template, rendered: undefined, isChanged: true, note, isFault: false }];
  }
  walk(task.template, task.rendered, "", notes, rows);
  return rows;
}

function walk(
  written: unknown,
  rendered: unknown,
  path: string,
  notes: ReadonlyMap<string, { note: string; isFault: boolean }>,
  rows: RenderedRow[],
): void {
  const note = notes.get(path);
  if (rows.length < ROWS_MAX) {
    if (isRecord(written) && isRecord(rendered) && Object.keys(written).length > 0) {
      for (const key of Object.keys(written)) {
        walk(written[key], rendered[key], path === "" ? key : `${path}.${key}`, notes, rows);
      }
      return;
    }
    if (Array.isArray(written) && Array.isArray(rendered) && written.length > 0) {
      for (const [index, value] of written.entries()) walk(value, rendered[index], `${path}[${index}]`, notes, rows);
      return;
    }
  }
  rows.push({
    path: path === "" ? "all" : path,
    written,
    rendered,
    isChanged: JSON.stringify(written) !== JSON.stringify(rendered),
    note: note?.note,
    isFault: note?.isFault ?? false,
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
