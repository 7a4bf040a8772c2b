import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { bytesText } from "../../parts/json/reference.ts";
import { ProblemPanel } from "../../parts/problem.tsx";
import { PART_BYTES, partOf } from "./content.ts";
import { type CsvRows, rowsOf } from "./csv.ts";
import { COLUMNS_SHOWN } from "./kinds.ts";
import { Table } from "./table.tsx";

/** Longest row that is looked for, bytes: a longer one is shown cut in two. */
const ROW_BYTES_MAX = 1024 * 1024;

/** What some programs write before a text in UTF-8. */
const MARK = [0xef, 0xbb, 0xbf];

/** A CSV file, some rows at a time. Only these are read. */
export function CsvTable({ refOf, name }: { refOf: string; name: string }): ReactNode {
  // Where the parts begin that were shown so far, this one last. The first row is the heading, and not counted.
  const [starts, setStarts] = useState<readonly number[]>([]);
  const first = useQuery({
    queryKey: ["file", "csv", refOf, 0],
    queryFn: async ({ signal }) => {
      const { rows, end } = await readRows(refOf, 0, signal, 1);
      return { head: rows[0] ?? [], end };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  const start = starts.at(-1) ?? first.data?.end;
  const part = useQuery({
    queryKey: ["file", "csv", refOf, "rows", start],
    queryFn: ({ signal }) => readRows(refOf, start ?? 0, signal),
    enabled: start !== undefined,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 10_000,
  });
  const error = first.error ?? part.error;
  if (error !== null) return <ProblemPanel error={error} />;
  if (first.data === undefined || part.data === undefined) return <p className="quiet">Loading …</p>;
  const { head } = first.data;
  const { rows, end, total } = part.data;
  const next = (start ?? 0) + end;
  const isAll = starts.length === 0 && next >= total;
  const columns = Math.max(head.length, ...rows.map((row) => row.length));
  const left = columns > COLUMNS_SHOWN ? `, the first ${COLUMNS_SHOWN} of ${columns} columns` : "";
  const place = isAll ? `${rows.length} rows` : `${rows.length} rows up to ${bytesText(next)} of ${bytesText(total)}`;
  return (
    <Table
      name={name}
      head={head.slice(0, COLUMNS_SHOWN)}
      rows={rows.map((row) => row.slice(0, COLUMNS_SHOWN))}
      paging={{
        place: `${place}${left}`,
        back: starts.length === 0 ? undefined : () => setStarts(starts.slice(0, -1)),
        on: next >= total ? undefined : () => setStarts([...starts, next]),
      }}
    />
  );
}

/** Rows from a place on, and the size of the file. */
async function readRows(
  ref: string,
  from: number,
  signal: AbortSignal,
  rowsMax?: number,
): Promise<CsvRows & { total: number }> {
  for (let length = PART_BYTES; ; length *= 4) {
    const { bytes, total } = await partOf(ref, from, length, signal);
    const isLast = from + bytes.length >= total || length >= ROW_BYTES_MAX;
    const mark = from === 0 && MARK.every((byte, at) => bytes[at] === byte) ? MARK.length : 0;
    const { rows, end } = rowsOf(bytes.subarray(mark), isLast, rowsMax);
    if (rows.length > 0 || isLast) return { rows, end: mark + end, total };
  }
}
