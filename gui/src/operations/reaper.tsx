import type { ReactNode } from "react";
import type { Overview } from "../api/types.ts";
import { Ago } from "../parts/now.tsx";
import { SweepButton } from "./sweep-button.tsx";

type Sweep = NonNullable<NonNullable<Overview["reaper"]>["last"]>;

/** What looks for stranded work, what it found, and a button to have it look now. */
export function ReaperPart({ reaper }: { reaper: Overview["reaper"] }): ReactNode {
  return (
    <section className="panel stack" data-part="reaper">
      <h2>Reaper</h2>
      {reaper === null ? <p className="quiet">Its state could not be read.</p> : <State reaper={reaper} />}
      <div className="row">
        <SweepButton />
      </div>
      <p className="quiet">A sweep offers work again that no worker has. It ends nothing and starts nothing twice.</p>
    </section>
  );
}

function State({ reaper }: { reaper: NonNullable<Overview["reaper"]> }): ReactNode {
  const { enabled, interval_seconds: seconds, holder, last, found } = reaper;
  return (
    <>
      <dl className="facts">
        <dt>Sweeps</dt>
        <dd>{enabled ? `every ${seconds} s` : "switched off (FLOW_COMMAND_REAPER_ENABLED)"}</dd>
        <dt>On server</dt>
        <dd className="mono">{holder ?? "no server at the moment"}</dd>
        <dt>Last sweep</dt>
        <dd>{last === null ? "none of this server" : <Swept sweep={last} />}</dd>
      </dl>
      {found.length > 0 && (
        <details>
          <summary>Sweeps that found something: {found.length}</summary>
          <ul>
            {found.map((sweep) => (
              <li key={sweep.at}>
                <Swept sweep={sweep} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function Swept({ sweep }: { sweep: Sweep }): ReactNode {
  const { pending, worker, timeout } = sweep;
  const parts = [
    pending > 0 && `${pending} not claimed`,
    worker > 0 && `${worker} of workers that are gone`,
    timeout > 0 && `${timeout} held for too long`,
  ].filter((part) => part !== false);
  return (
    <>
      <Ago at={sweep.at} />
      {sweep.asked && ", asked for"}: {parts.length === 0 ? "nothing stranded" : parts.join(", ")}
    </>
  );
}
