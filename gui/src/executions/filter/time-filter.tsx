import { type ReactNode, useState } from "react";
import { momentText } from "../../parts/time.ts";
import { SPANS } from "./spans.ts";

/** When they began: a span before now, which goes with the time, or two moments. */
export function TimeFilter({
  since,
  until,
  onChange,
}: {
  since: string | undefined;
  until: string | undefined;
  onChange(values: { since?: string | undefined; until?: string | undefined }): void;
}): ReactNode {
  const isMoments = until !== undefined || (since !== undefined && !(since in SPANS));
  const [asksMoments, setAsksMoments] = useState(isMoments);
  const shows = asksMoments || isMoments;
  return (
    <>
      <label>
        Started
        <select
          value={shows ? "between" : (since ?? "")}
          onChange={({ target: { value } }) => {
            setAsksMoments(value === "between");
            if (value !== "between") onChange({ since: value || undefined, until: undefined });
          }}
        >
          <option value="">at any time</option>
          {Object.entries(SPANS).map(([word, { label }]) => (
            <option key={word} value={word}>
              in {label}
            </option>
          ))}
          <option value="between">between …</option>
        </select>
      </label>
      {shows && (
        <>
          <Moment label="from" value={since} onChange={(value) => onChange({ since: value })} />
          <Moment label="to" value={until} onChange={(value) => onChange({ until: value })} />
        </>
      )}
    </>
  );
}

/** A moment in the reader's own zone; in the address it stands in UTC. */
function Moment({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange(value: string | undefined): void;
}): ReactNode {
  const ms = Date.parse(value ?? "");
  return (
    <label>
      {label}
      <input
        type="datetime-local"
        value={Number.isNaN(ms) ? "" : momentText(ms).slice(0, 16).replace(" ", "T")}
        onChange={(event) => {
          const given = Date.parse(event.target.value);
          onChange(Number.isNaN(given) ? undefined : new Date(given).toISOString());
        }}
      />
    </label>
  );
}
