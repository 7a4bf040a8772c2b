import { useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { sessionToken } from "../../api/session.ts";
import { loadPayload, payloadAddress } from "../../parts/json/reference.ts";
import { JsonView } from "../../parts/json/view.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { PART_BYTES, partOf, pictureOf } from "./content.ts";
import { CsvTable } from "./csv-table.tsx";
import type { PreviewKind } from "./kinds.ts";

const ParquetTable = lazy(() => import("./parquet-table.tsx"));

/** What a file holds, or how it begins. */
export function Preview(props: { refOf: string; name: string; bytes: number; kind: PreviewKind }): ReactNode {
  const { refOf, name, bytes, kind } = props;
  switch (kind) {
    case "image":
      return <Picture refOf={refOf} name={name} />;
    case "json":
      return <Data refOf={refOf} name={name} />;
    case "page":
      return <Page refOf={refOf} name={name} />;
    case "csv":
      return <CsvTable refOf={refOf} name={name} />;
    case "parquet":
      return (
        <Suspense fallback={<p className="quiet">Loading …</p>}>
          <ParquetTable refOf={refOf} name={name} bytes={bytes} />
        </Suspense>
      );
    case "text":
      return <Text refOf={refOf} name={name} />;
  }
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

/**
 * HTML in a frame of an origin of its own: no script, no form, no way out of it. The server sends it under a policy that says the same. Where a token
 * is needed, a frame would not send it: the text is shown.
 */
function Page({ refOf, name }: { refOf: string; name: string }): ReactNode {
  const [isSource, setIsSource] = useState(false);
  if (sessionToken() !== undefined) return <Text refOf={refOf} name={name} />;
  return (
    <>
      <div className="segments">
        <button type="button" aria-pressed={!isSource} onClick={() => setIsSource(false)}>
          Page
        </button>
        <button type="button" aria-pressed={isSource} onClick={() => setIsSource(true)}>
          Source
        </button>
      </div>
      {isSource ? (
        <Text refOf={refOf} name={name} />
      ) : (
        <iframe sandbox="" src={`${payloadAddress(refOf)}&frame=true`} title={name} referrerPolicy="no-referrer" />
      )}
    </>
  );
}

function Text({ refOf, name }: { refOf: string; name: string }): ReactNode {
  const beginning = useQuery({
    queryKey: ["file", "beginning", refOf],
    queryFn: async ({ signal }) => {
      const { bytes, total } = await partOf(refOf, 0, PART_BYTES, signal);
      const text = new TextDecoder().decode(bytes);
      const isWhole = total <= bytes.length;
      // The last character may be cut in two.
      return { text: isWhole ? text : text.replace(/\ufffd$/, ""), isWhole };
    },
    ...KEPT,
  });
  if (beginning.isError) return <ProblemPanel error={beginning.error} />;
  if (beginning.data === undefined) return <p className="quiet">Loading …</p>;
  const { text, isWhole } = beginning.data;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <section className="sample" tabIndex={0} aria-label={name}>
        <pre>{text}</pre>
      </section>
      {!isWhole && <p className="quiet">The first {PART_BYTES / 1_024} KiB. Download it to see all of it.</p>}
    </>
  );
}
