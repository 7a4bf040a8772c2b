import { getRouteApi, Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef } from "react";
import type { Step } from "../../api/types.ts";
import { Status } from "../../parts/status.tsx";
import { durationText } from "../../parts/time.ts";
import type { Attempt } from "./attempts.ts";

const route = getRouteApi("/executions/$executionId");
const ROW_PX = 30;

/** Many attempts of a step, those of a loop's iterations above all: one of them is looked at. */
export function AttemptList({
  attempts,
  titles,
  chosen,
  step,
  isFailed,
}: {
  attempts: readonly Attempt[];
  /** What each is called, by its key. */
  titles: ReadonlyMap<string, string>;
  chosen: string | undefined;
  step: Step;
  isFailed: boolean;
}): ReactNode {
  const scroller = useRef<HTMLElement>(null);
  const rows = useVirtualizer({
    count: attempts.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 15,
  });
  return (
    <div className="stack">
      <p className="row">
        <FailedOnly isFailed={isFailed} />
        <span className="quiet">
          {attempts.length.toLocaleString("en")} shown, newest first
          {step.loop?.total != null && ` of ${step.loop.total.toLocaleString("en")} iterations`}
          {(step.loop?.failed ?? 0) > 0 && `; ${step.loop?.failed} failed`}
        </span>
      </p>
      {attempts.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
        <section className="list attempts" ref={scroller} aria-label="Attempts" tabIndex={0}>
          <div style={{ height: rows.getTotalSize() }}>
            {rows.getVirtualItems().map(({ index, start }) => {
              const attempt = attempts[index];
              return attempt === undefined ? null : (
                <div key={attempt.key} className="at" style={{ top: start }}>
                  <AttemptRow
                    attempt={attempt}
                    title={titles.get(attempt.key) ?? ""}
                    isChosen={attempt.commandId === chosen}
                  />
                </div>
              );
            })}
          </div>
        </section>
      )}
      {chosen === undefined && attempts.length > 0 && (
        <p className="quiet">Choose one to see its values, log and error.</p>
      )}
    </div>
  );
}

function FailedOnly({ isFailed }: { isFailed: boolean }): ReactNode {
  const navigate = route.useNavigate();
  return (
    <label>
      <input
        type="checkbox"
        checked={isFailed}
        onChange={({ target }) =>
          void navigate({
            search: (before) => ({
              ...before,
              failed: target.checked ? (true as const) : undefined,
              command: undefined,
            }),
            replace: true,
          })
        }
      />
      failed only
    </label>
  );
}

function AttemptRow({ attempt, title, isChosen }: { attempt: Attempt; title: string; isChosen: boolean }): ReactNode {
  const { claimedAt, endedAt, commandId, message } = attempt;
  return (
    <Link
      from="/executions/$executionId"
      to="."
      search={(before) => ({ ...before, command: commandId })}
      replace
      resetScroll={false}
      className="attempt-row"
      aria-current={isChosen ? "true" : undefined}
    >
      <Status of={stateOf(attempt)} short />
      <span>{title}</span>
      <span className="quiet">{message}</span>
      <span className="number quiet">
        {claimedAt !== undefined && endedAt !== undefined && durationText(endedAt - claimedAt)}
      </span>
    </Link>
  );
}

/** The state of an attempt, as states of steps are called. */
export function stateOf({ failed, cancelled, parked, endedAt, claimedAt }: Attempt): string {
  if (failed) return "FAILED";
  if (cancelled) return "CANCELLED";
  if (endedAt !== undefined) return "COMPLETED";
  if (parked) return "WAITING";
  return claimedAt === undefined ? "PENDING" : "RUNNING";
}
