import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef } from "react";

/** Rows of a value, and the names of their columns. */
export interface Table {
  rows: readonly Readonly<Record<string, unknown>>[];
  columns: string[];
}

/** Rows in which columns are looked for, and columns that are shown. */
const LOOKED_AT = 200;
const COLUMNS_MAX = 40;
const CELL_MAX = 200;
const ROW_PX = 28;

/** The rows of a value: of a list of objects, or of the first such list in it. Undefined if it has none. */
export function tableOf(value: unknown): Table | undefined {
  if (isRows(value)) return { rows: value, columns: columnsOf(value) };
  if (!isRecord(value)) return undefined;
  const rows = Object.values(value).find(isRows);
  return rows === undefined ? undefined : { rows, columns: columnsOf(rows) };
}

/** Rows under each other; only those that are seen are in the page. */
export function JsonTable({ table: { rows, columns }, label }: { table: Table; label: string }): ReactNode {
  const scroller = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
  });
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    <>
      <p className="quiet">
        {rows.length.toLocaleString("en")} rows{columns.length === COLUMNS_MAX && `, the first ${COLUMNS_MAX} columns`}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <section className="rows" ref={scroller} tabIndex={0} aria-label={`Rows of ${label}`}>
        <table aria-rowcount={rows.length + 1}>
          <thead>
            <tr>
              <th className="number">#</th>
              {columns.map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            <Gap px={above} columns={columns.length + 1} />
            {items.map(({ index }) => (
              <tr key={index} aria-rowindex={index + 2}>
                <td className="number quiet">{index}</td>
                {columns.map((column) => (
                  <Cell key={column} value={rows[index]?.[column]} />
                ))}
              </tr>
            ))}
            <Gap px={below} columns={columns.length + 1} />
          </tbody>
        </table>
      </section>
    </>
  );
}

/** The rows that are not in the page, as one of their height. */
function Gap({ px, columns }: { px: number; columns: number }): ReactNode {
  if (px <= 0) return null;
  return (
    <tr>
      <td colSpan={columns} style={{ height: px, padding: 0, border: 0 }} />
    </tr>
  );
}

function Cell({ value }: { value: unknown }): ReactNode {
  const text = cellText(value);
  return (
    <td className={typeof value === "number" ? "number" : undefined} title={text.length > 20 ? text : undefined}>
      {text}
    </td>
  );
}

function cellText(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "string") return value.slice(0, CELL_MAX);
  if (Array.isArray(value) && value.length > 10) return `[${value.length}]`;
  if (isRecord(value) && Object.keys(value).length > 10) return `{${Object.keys(value).length}}`;
  return JSON.stringify(value).slice(0, CELL_MAX);
}

function columnsOf(rows: readonly Readonly<Record<string, unknown>>[]): string[] {
  const columns = new Set<string>();
  for (const row of rows.slice(0, LOOKED_AT)) for (const column of Object.keys(row)) columns.add(column);
  return [...columns].slice(0, COLUMNS_MAX);
}

function isRows(value: unknown): value is Record<string, unknown>[] {
  return Array.isArray(value) && value.length > 0 && value.every(isRecord);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
