import { ArrowDownToLine, ArrowUpToLine, CircleAlert, Download } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Execution } from "../../api/types.ts";
import { countText } from "../traced/count-text.ts";
import { titleOf } from "./log-rows.ts";
import { download, FollowButton, type LogToolsProps, LookButtons, Search } from "./log-tools.tsx";
import { type RunFilter, scanRuns } from "./run-log.ts";
import type { LogSection } from "./sections.ts";
import type { Found } from "./use-search.ts";

type Shared = "text" | "onText" | "place" | "onGo" | "isOpen" | "isFollowed" | "setIsFollowed";
type Looks = "isWrapped" | "setIsWrapped" | "hasTimes" | "setHasTimes";

/** What the tools of a long log show and change. */
interface LongLogToolsProps extends Pick<LogToolsProps, Shared | Looks> {
  execution: Execution;
  filter: RunFilter;
  /** The last event that belongs to the log. */
  until: number;
  /** Runs that are listed. */
  size: number;
  found: Found;
  onStep(step: string | undefined): void;
  onFailed(isFailed: boolean): void;
  /** To the run of this number. */
  onEnd(index: number): void;
  onFailure(by: 1 | -1): void;
}

/** What can be done with a long log: search, step, failures, ends, wrapping, times, following, download. */
export function LongLogTools(props: LongLogToolsProps): ReactNode {
  const { execution, filter, until, size, found, text, onText, place, onGo, onStep, onFailed, onEnd, onFailure } =
    props;
  const { step, isFailed } = filter;
  return (
    <header className="log-tools">
      <Search
        {...{ text, onText, place, onGo }}
        found={found.runs.length}
        none={found.looked === undefined ? (found.problem ?? "no run") : `${countText(found.looked)} runs read`}
      />
      <label>
        <span className="unseen">Step</span>
        <select value={step ?? ""} onChange={({ target }) => onStep(target.value === "" ? undefined : target.value)}>
          <option value="">All steps</option>
          {execution.steps.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span className="unseen">Runs</span>
        <select value={isFailed ? "failed" : ""} onChange={({ target }) => onFailed(target.value !== "")}>
          <option value="">All runs</option>
          <option value="failed">Failed runs</option>
        </select>
      </label>
      <span className="quiet number" role="status">
        {countText(size)} {size === 1 ? "run" : "runs"}
      </span>
      <div className="row tight end">
        <FollowButton {...props} />
        <button type="button" className="quiet" onClick={() => onEnd(0)}>
          <ArrowUpToLine className="icon" aria-hidden="true" /> To the start
        </button>
        <button type="button" className="quiet" onClick={() => onEnd(size - 1)}>
          <ArrowDownToLine className="icon" aria-hidden="true" /> To the end
        </button>
        <button type="button" className="quiet" onClick={() => onFailure(-1)}>
          <CircleAlert className="icon" aria-hidden="true" /> Previous failure
        </button>
        <button type="button" className="quiet" onClick={() => onFailure(1)}>
          <CircleAlert className="icon" aria-hidden="true" /> Next failure
        </button>
        <LookButtons {...props} />
        <DownloadButton {...{ execution, filter, until }} />
      </div>
    </header>
  );
}

/** Reads the whole log once and gives it as a file. */
function DownloadButton({
  execution,
  filter,
  until,
}: Pick<LongLogToolsProps, "execution" | "filter" | "until">): ReactNode {
  const [read, setRead] = useState<number>();
  const [problem, setProblem] = useState<string>();
  const aborter = useRef<AbortController>(undefined);
  useEffect(() => () => aborter.current?.abort(), []);
  const { execution_id: executionId, path } = execution;
  const run = async () => {
    aborter.current = new AbortController();
    const { signal } = aborter.current;
    const parts: string[] = [];
    let count = 0;
    setRead(0);
    setProblem(undefined);
    try {
      await scanRuns(
        executionId,
        filter,
        until,
        (sections) => {
          parts.push(sections.map(textOf).join(""));
          count += sections.length;
          setRead(count);
        },
        signal,
      );
      download(`${path.replaceAll("/", "-")}-${executionId}.log`, parts);
    } catch (error) {
      if (!signal.aborted) setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setRead(undefined);
    }
  };
  return (
    <>
      <button type="button" className="quiet" disabled={read !== undefined} onClick={() => void run()}>
        <Download className="icon" aria-hidden="true" />{" "}
        {read === undefined ? "Download" : `${countText(read)} runs read`}
      </button>
      {problem !== undefined && <span role="alert">{problem}</span>}
    </>
  );
}

function textOf(section: LogSection): string {
  const lines = section.lines.map(({ at, text }) => `  ${new Date(at).toISOString()} ${text}\n`);
  const dropped = section.dropped > 0 ? `  (${section.dropped} earlier lines were not kept)\n` : "";
  return `== ${section.step}, ${titleOf(section)}\n${dropped}${lines.join("")}`;
}
