import type { ReactNode } from "react";

/** What stands above and below a part of a table. */
interface Paging {
  /** Which part it is: `rows 101 to 200 of 4,000`. */
  place: string;
  /** Undefined: it is the first, or the last. */
  back: (() => void) | undefined;
  on: (() => void) | undefined;
}

/** A part of a table under its heading, and the ways to the parts beside it. */
export function Table(props: {
  name: string;
  head: readonly string[];
  rows: readonly (readonly string[])[];
  paging: Paging;
}): ReactNode {
  const { name, head, rows, paging } = props;
  const { place, back, on } = paging;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
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
            {rows.map((row, line) => (
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
      <nav className="row" aria-label={`Parts of ${name}`}>
        {(back !== undefined || on !== undefined) && (
          <>
            <button type="button" disabled={back === undefined} onClick={back}>
              Previous rows
            </button>
            <button type="button" disabled={on === undefined} onClick={on}>
              Next rows
            </button>
          </>
        )}
        <span className="quiet">{place}</span>
      </nav>
    </>
  );
}
