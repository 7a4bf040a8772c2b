import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import { loadPayload } from "../../parts/json/reference.ts";
import { JsonView } from "../../parts/json/view.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { BEGINNING_BYTES, beginningOf, pictureOf } from "./content.ts";
import { type PreviewKind, rowsOf } from "./kinds.ts";

/** What a file holds, or how it begins. */
export function Preview({ refOf, name, kind }: { refOf: string; name: string; kind: PreviewKind }): ReactNode {
  if (kind === "image") return <Picture refOf={refOf} name={name} />;
  if (kind === "json") return <Data refOf={refOf} name={name} />;
  return <Text refOf={refOf} name={name} isTable={kind === "table"} />;
}

/** A file never changes. What was shown is dropped soon after it is closed. */
const KEPT = { staleTime: Number.POSITIVE_INFINITY, gcTime: 10_000 } as const;

function Picture({ refOf, name }: { refOf: string; name: string }): ReactNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useQuery({
    queryKey: ["file", "picture", refOf],
    queryFn: ({ signal }) => pictureOf(refOf, signal),
    retry: false,
    ...KEPT,
  });
  const { data } = picture;
  useEffect(() => {
    if (data !== undefined) canvas.current?.getContext("2d")?.drawImage(data, 0, 0);
  }, [data]);
  if (picture.isError) return <ProblemPanel error={picture.error} />;
  if (data === undefined) return <p className="quiet">Loading …</p>;
  return <canvas ref={canvas} width={data.width} height={data.height} role="img" aria-label={name} />;
}

function Data({ refOf, name }: { refOf: string; name: string }): ReactNode {
  const payload = useQuery({
    queryKey: ["payload", refOf],
    queryFn: ({ signal }) => loadPayload(refOf, signal),
    ...KEPT,
  });
  if (payload.isError) return <ProblemPanel error={payload.error} />;
  if (payload.data === undefined) return <p className="quiet">Loading …</p>;
  return <JsonView label={name} value={payload.data} />;
}

function Text({ refOf, name, isTable }: { refOf: string; name: string; isTable: boolean }): ReactNode {
  const beginning = useQuery({
    queryKey: ["file", "beginning", refOf],
    queryFn: ({ signal }) => beginningOf(refOf, signal),
    ...KEPT,
  });
  if (beginning.isError) return <ProblemPanel error={beginning.error} />;
  if (beginning.data === undefined) return <p className="quiet">Loading …</p>;
  const { text, isWhole } = beginning.data;
  return (
    <>
      {isTable ? (
        <Rows rows={rowsOf(text, isWhole)} name={name} />
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
        <section className="sample" tabIndex={0} aria-label={name}>
          <pre>{text}</pre>
        </section>
      )}
      {!isWhole && <p className="quiet">The first {BEGINNING_BYTES / 1_024} KiB. Download it to see all of it.</p>}
    </>
  );
}

function Rows({ rows, name }: { rows: readonly (readonly string[])[]; name: string }): ReactNode {
  const [head = [], ...body] = rows;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section className="scroll" tabIndex={0} aria-label={name}>
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other name
              <th key={index}>{cell}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((row, line) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a file never changes
            <tr key={line}>
              {row.map((cell, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a file never changes
                <td key={index}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
