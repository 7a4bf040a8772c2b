import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { type Delivery, deliveryList, type Trigger } from "../api/triggers.ts";
import { bytesText } from "../parts/json/reference.ts";
import { Ago } from "../parts/now.tsx";
import { Status } from "../parts/status.tsx";
import { PagedList } from "./paged-list.tsx";

/** Each verdict in words, and the state whose sign and colour it has. */
const VERDICTS: Readonly<Record<Delivery["verdict"], { word: string; look: string }>> = {
  started: { word: "started", look: "started" },
  queued: { word: "queued", look: "queued" },
  repeated: { word: "came before", look: "skipped" },
  skipped: { word: "skipped", look: "skipped" },
  answered: { word: "answered", look: "started" },
  not_verified: { word: "not verified", look: "failed" },
  too_large: { word: "too large", look: "failed" },
  rate_limited: { word: "too many", look: "missed" },
  unreadable: { word: "unreadable", look: "failed" },
  failed: { word: "failed", look: "failed" },
};

/** The last deliveries of a webhook with their verdicts: those that never became a fire too. */
export function Deliveries({ trigger: { trigger_id: id } }: { trigger: Trigger }): ReactNode {
  const [isRefused, setIsRefused] = useState(false);
  const pages = useInfiniteQuery(deliveryList(id, isRefused));
  const deliveries = pages.data?.pages.flatMap((page) => page.deliveries) ?? [];
  return (
    <section className="card" data-part="deliveries">
      <header>
        <h2>Last deliveries</h2>
        <div className="chips row aside">
          <button type="button" className="chip" aria-pressed={!isRefused} onClick={() => setIsRefused(false)}>
            All
          </button>
          <button type="button" className="chip" aria-pressed={isRefused} onClick={() => setIsRefused(true)}>
            Refused
          </button>
        </div>
      </header>
      <PagedList pages={pages} count={deliveries.length} empty={isRefused ? "None was refused." : "No deliveries yet."}>
        <Table deliveries={deliveries} />
      </PagedList>
    </section>
  );
}

function Table({ deliveries }: { deliveries: readonly Delivery[] }): ReactNode {
  return (
    <table className="stacked">
      <thead>
        <tr>
          <th>Verdict</th>
          <th>Came</th>
          <th>From</th>
          <th>Body</th>
          <th>Execution, or why not</th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map((delivery) => (
          <Row key={delivery.delivery_id} delivery={delivery} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ delivery }: { delivery: Delivery }): ReactNode {
  const { verdict, count, last_at: at, address, bytes, execution_id: executionId, reason } = delivery;
  const { word, look } = VERDICTS[verdict];
  return (
    <tr>
      <td>
        <Status of={verdict} look={look} word={word} />
      </td>
      <td className="number quiet" data-label="Came">
        <Ago at={at} />
        {count > 1 && `, ${count.toLocaleString("en")} like this in a minute`}
      </td>
      <td className="mono" data-label="From">
        {address ?? (count > 1 ? "several" : "unknown")}
      </td>
      <td className="number quiet" data-label="Body">
        {bytes === undefined ? "not read" : bytesText(bytes)}
      </td>
      <td className="wrap" data-label="Execution">
        {executionId !== undefined && (
          <Link to="/executions/$executionId" params={{ executionId }} className="mono">
            {executionId}
          </Link>
        )}
        {executionId !== undefined && " "}
        {reason}
      </td>
    </tr>
  );
}
