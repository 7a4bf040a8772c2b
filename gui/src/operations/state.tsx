import type { ReactNode } from "react";
import type { Overview } from "../api/types.ts";
import { Ago } from "../parts/now.tsx";
import { durationText } from "../parts/time.ts";
import { countText } from "./count-text.ts";

/** Batches, the database, the broker and the servers: one card each. */
export function Parts({ overview }: { overview: Overview }): ReactNode {
  const { batches, database, broker, servers } = overview;
  return (
    <>
      <Card name="Batches of events" isThere={batches !== null}>
        {batches !== null && (
          <>
            <Fact name="Accepted">{countText(batches.accepted)}</Fact>
            <Fact name="Processing">{countText(batches.processing)}</Fact>
            <Fact name="Oldest">{batches.oldest_ms === null ? "none" : durationText(batches.oldest_ms)}</Fact>
            <Fact name="Failed">
              {batches.failed === null ? (
                "none of the newest"
              ) : (
                <>
                  {batches.failed.count} of the newest {batches.failed.of.toLocaleString("en")}, the last{" "}
                  <Ago at={batches.failed.at} />: {batches.failed.code} {batches.failed.message}
                </>
              )}
            </Fact>
          </>
        )}
      </Card>
      <Card name="Database" isThere={database !== null}>
        {database !== null && (
          <>
            <Fact name="Answers in">{latencyText(database.latency_ms)}</Fact>
            <Fact name="Version">
              PostgreSQL {database.version}
              {database.embedded ? ", embedded in this server" : ""}
            </Fact>
            <Fact name="Size">
              {(database.bytes / 1_048_576).toLocaleString("en", { maximumFractionDigits: 0 })} MiB
            </Fact>
            <Fact name="Connections">
              {database.connections} of {database.connections_max}
            </Fact>
          </>
        )}
      </Card>
      <Card name="Broker" isThere>
        <Fact name="State">
          {broker.kind === "process"
            ? "not set up; one server needs none"
            : broker.connected
              ? "NATS, connected"
              : "NATS, cannot be reached"}
        </Fact>
        {broker.latency_ms !== null && <Fact name="Answers in">{latencyText(broker.latency_ms)}</Fact>}
      </Card>
      <Card name="Servers" isThere={servers !== null}>
        {servers?.length === 0 && <Fact name="Known">no heartbeat yet</Fact>}
        {servers?.map((server) => (
          <Fact key={server.name} name={server.answers ? "This one" : "Another"}>
            <span className="mono">{server.name}</span> {server.version ?? ""}, up since <Ago at={server.started_at} />,
            heartbeat {durationText(server.heartbeat_age_ms)} ago
          </Fact>
        ))}
      </Card>
    </>
  );
}

function Card({ name, isThere, children }: { name: string; isThere: boolean; children: ReactNode }): ReactNode {
  return (
    <section className="panel">
      <h2>{name}</h2>
      {isThere ? <dl className="facts">{children}</dl> : <p className="quiet">It could not be read.</p>}
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return (
    <div className="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function latencyText(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : durationText(ms);
}
