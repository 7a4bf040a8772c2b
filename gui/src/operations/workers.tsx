import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { Overview } from "../api/types.ts";
import { Ago, useNow } from "../parts/now.tsx";
import { Status } from "../parts/status.tsx";
import { durationText } from "../parts/time.ts";

type Worker = NonNullable<Overview["workers"]>["items"][number];
type Command = Worker["commands"][number];
/** Commands of a worker that are shown before the user asks for the others. */
const SHOWN_MAX = 5;

/** The workers, their load, their last heartbeats, and their commands. */
export function Workers({ workers }: { workers: Overview["workers"] }): ReactNode {
  if (workers === null) return <NotRead name="The workers" />;
  if (workers.items.length === 0) {
    return (
      <section className="panel">
        <h2>No worker is registered</h2>
        <p>
          Nothing can run. Start one: <code>flow serve --role=worker</code>
        </p>
      </section>
    );
  }
  return (
    <section className="panel stack" data-part="workers">
      <h2>
        Workers <span className="quiet">{workers.items.length + (workers.more ? "+" : "")}</span>
      </h2>
      <ul className="workers">
        {workers.items.map((worker) => (
          <WorkerRow key={worker.name} worker={worker} />
        ))}
      </ul>
      {workers.more && <p className="quiet">There are more; those that are busy are shown.</p>}
    </section>
  );
}

function WorkerRow({ worker }: { worker: Worker }): ReactNode {
  const [all, setAll] = useState(false);
  const { commands, running } = worker;
  const shown = all ? commands : commands.slice(0, SHOWN_MAX);
  return (
    <li className="worker" data-worker={worker.name}>
      <div className="row spread">
        <span className="row">
          <Status of={worker.status} />
          <strong className="wrap">{worker.name}</strong>
        </span>
        <span className="row quiet">
          <Slots running={running} capacity={worker.capacity} />
          <span className="number">heartbeat {durationText(worker.heartbeat_age_ms)} ago</span>
          <span>{text(worker.about["version"])}</span>
        </span>
      </div>
      <p className="quiet wrap">
        {worker.kinds.length === 0 ? "no kinds of task" : worker.kinds.join(", ")}
        {Object.keys(worker.labels).length > 0 && <span className="mono"> · {pairs(worker.labels)}</span>}
        {text(worker.about["hostname"]) !== "" && (
          <span className="mono">
            {" "}
            · {text(worker.about["hostname"])} {text(worker.about["pid"])}
          </span>
        )}
      </p>
      {text(worker.about["isolation"]) !== "" && <Isolation of={text(worker.about["isolation"])} />}
      {shown.length > 0 && <Commands commands={shown} name={worker.name} />}
      {!all && commands.length > SHOWN_MAX && (
        <button type="button" className="plain" onClick={() => setAll(true)}>
          {commands.length - SHOWN_MAX} more
        </button>
      )}
      {all && running > commands.length && (
        <p className="quiet">{running - commands.length} younger ones are not listed.</p>
      )}
    </li>
  );
}

/** What keeps the code of its tasks apart from it. */
function Isolation({ of }: { of: string }): ReactNode {
  const isOpen = of.startsWith("none");
  return (
    <p className={isOpen ? "wrap status tone-warn" : "quiet wrap"} data-part="isolation">
      {isOpen ? "Code of tasks runs without a sandbox: " : "Sandbox: "}
      {of}
    </p>
  );
}

/** How full a worker is: a bar and its numbers. */
function Slots({ running, capacity }: { running: number; capacity: number }): ReactNode {
  const share = capacity === 0 ? 0 : Math.min(100, (100 * running) / capacity);
  return (
    <span className="row slots" title={`${running} of ${capacity} slots`}>
      <span className="bar" aria-hidden="true">
        <span style={{ width: `${share}%` }} />
      </span>
      <span className="number">
        {running} of {capacity} slots
      </span>
    </span>
  );
}

function Commands({ commands, name }: { commands: readonly Command[]; name: string }): ReactNode {
  return (
    <table aria-label={`What ${name} runs`}>
      <thead>
        <tr>
          <th>Step</th>
          <th>Playbook</th>
          <th>Since</th>
          <th className="wide">Attempt</th>
          <th className="wide">Lease</th>
        </tr>
      </thead>
      <tbody>
        {commands.map((command) => (
          <tr key={command.command_id}>
            <td className="wrap">
              <Link
                to="/executions/$executionId"
                params={{ executionId: command.execution_id }}
                search={{ step: command.step }}
              >
                {command.step}
              </Link>
            </td>
            <td className="wrap">{command.path}</td>
            <td>
              <Ago at={command.claimed_at} />
            </td>
            <td className="wide number">{command.attempt}</td>
            <td className="wide number">
              <Lease at={command.lease_expires_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Until when no other worker gets it. */
function Lease({ at }: { at: string }): ReactNode {
  const isOver = useNow() > Date.parse(at);
  return (
    <span className={isOver ? "status tone-warn" : undefined}>
      {isOver ? "over since " : "ends "}
      <Ago at={at} />
    </span>
  );
}

/** Where a part could not be read: the verdict says why. */
export function NotRead({ name }: { name: string }): ReactNode {
  return (
    <section className="panel quiet">
      <p>{name} could not be read now.</p>
    </section>
  );
}

function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function pairs(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}
