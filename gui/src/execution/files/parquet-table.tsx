import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type AsyncBuffer, cachedAsyncBuffer, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { type ReactNode, useState } from "react";
import { ProblemPanel } from "../../parts/problem.tsx";
import { partOf } from "./content.ts";
import { COLUMNS_SHOWN, ROWS_SHOWN } from "./kinds.ts";
import { cellText, columnsOf } from "./parquet-cells.ts";
import { Table } from "./table.tsx";

/** A Parquet file, some rows at a time. Its description is read, and of the columns what these rows need. */
export default function ParquetTable(props: { refOf: string; name: string; bytes: number }): ReactNode {
  const { refOf, name, bytes } = props;
  const [first, setFirst] = useState(0);
  const part = useQuery({
    queryKey: ["file", "parquet", refOf, first],
    queryFn: ({ signal }) => readRows(refOf, bytes, first, signal),
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 10_000,
  });
  if (part.isError) return <ProblemPanel error={part.error} />;
  if (part.data === undefined) return <p className="quiet">Loading …</p>;
  const { head, rows, total, columns } = part.data;
  const last = Math.min(first + ROWS_SHOWN, total);
  const left = columns > head.length ? `, the first ${head.length} of ${columns} columns` : "";
  const place = total === 0 ? "no rows" : `rows ${count(first + 1)} to ${count(last)} of ${count(total)}`;
  return (
    <Table
      name={name}
      head={head}
      rows={rows}
      paging={{
        place: `${place}${left}`,
        back: first === 0 ? undefined : () => setFirst(Math.max(0, first - ROWS_SHOWN)),
        on: last >= total ? undefined : () => setFirst(first + ROWS_SHOWN),
      }}
    />
  );
}

function count(number: number): string {
  return number.toLocaleString("en");
}

async function readRows(ref: string, bytes: number, rowStart: number, signal: AbortSignal) {
  const source: AsyncBuffer = {
    byteLength: bytes,
    slice: async (start, end = bytes) => (await partOf(ref, start, end - start, signal)).bytes.buffer,
  };
  const file = cachedAsyncBuffer(source);
  const metadata = await parquetMetadataAsync(file);
  const all = columnsOf(metadata.schema);
  const head = all.slice(0, COLUMNS_SHOWN);
  const total = Number(metadata.num_rows);
  const rowEnd = Math.min(rowStart + ROWS_SHOWN, total);
  const found = total === 0 ? [] : await parquetReadObjects({ file, metadata, columns: head, rowStart, rowEnd });
  return { head, rows: found.map((row) => head.map((column) => cellText(row[column]))), total, columns: all.length };
}
