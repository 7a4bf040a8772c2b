import {
  ArrowDownToLine,
  ChevronDown,
  ChevronUp,
  Clock,
  Download,
  FoldVertical,
  UnfoldVertical,
  WrapText,
} from "lucide-react";
import type { ReactNode } from "react";
import { countText } from "../traced/count-text.ts";
import type { Level } from "./sections.ts";

/** What the tools of the log show and change. */
export interface LogToolsProps {
  text: string;
  onText(text: string): void;
  /** Lines that have the text, and the number of the one at which the search stands, from 0. */
  found: number;
  place: number;
  onGo(by: 1 | -1): void;
  least: Level;
  setLeast(level: Level): void;
  isWrapped: boolean;
  setIsWrapped(is: boolean): void;
  hasTimes: boolean;
  setHasTimes(has: boolean): void;
  isFollowed: boolean;
  setIsFollowed(is: boolean): void;
  /** More lines may come. */
  isOpen: boolean;
  isAllFolded: boolean;
  onFoldAll(): void;
  /** Long logs that were not read. */
  left: number;
  onReadAll(): void;
  /** The name of the file, and its text. */
  file: string;
  content(): string;
}

/** What can be done with the log: search, levels, folding, wrapping, times, following, download. */
export function LogTools(props: LogToolsProps): ReactNode {
  const { least, setLeast, isAllFolded, onFoldAll, left, onReadAll, file, content } = props;
  return (
    <header className="log-tools">
      <Search {...props} />
      <label>
        <span className="unseen">Level</span>
        <select value={least} onChange={({ target }) => setLeast(target.value as Level)}>
          <option value="debug">All levels</option>
          <option value="info">Info and above</option>
          <option value="warn">Warnings and errors</option>
          <option value="error">Errors</option>
        </select>
      </label>
      {left > 0 && (
        <button type="button" className="quiet" onClick={onReadAll}>
          Read {countText(left)} long {left === 1 ? "log" : "logs"}
        </button>
      )}
      <div className="row tight end">
        <FollowButton {...props} />
        <button type="button" className="quiet" onClick={onFoldAll}>
          {isAllFolded ? (
            <UnfoldVertical className="icon" aria-hidden="true" />
          ) : (
            <FoldVertical className="icon" aria-hidden="true" />
          )}
          {isAllFolded ? "Unfold all" : "Fold all"}
        </button>
        <LookButtons {...props} />
        <button type="button" className="quiet" onClick={() => download(file, [content()])}>
          <Download className="icon" aria-hidden="true" /> Download
        </button>
      </div>
    </header>
  );
}

/** Whether the end is followed, where more may come. */
export function FollowButton({
  isOpen,
  isFollowed,
  setIsFollowed,
}: Pick<LogToolsProps, "isOpen" | "isFollowed" | "setIsFollowed">): ReactNode {
  if (!isOpen) return null;
  return (
    <button type="button" className="quiet" aria-pressed={isFollowed} onClick={() => setIsFollowed(!isFollowed)}>
      <ArrowDownToLine className="icon" aria-hidden="true" /> Follow
    </button>
  );
}

/** How lines are shown. */
export function LookButtons({
  isWrapped,
  setIsWrapped,
  hasTimes,
  setHasTimes,
}: Pick<LogToolsProps, "isWrapped" | "setIsWrapped" | "hasTimes" | "setHasTimes">): ReactNode {
  return (
    <>
      <button type="button" className="quiet" aria-pressed={isWrapped} onClick={() => setIsWrapped(!isWrapped)}>
        <WrapText className="icon" aria-hidden="true" /> Wrap
      </button>
      <button type="button" className="quiet" aria-pressed={hasTimes} onClick={() => setHasTimes(!hasTimes)}>
        <Clock className="icon" aria-hidden="true" /> Times
      </button>
    </>
  );
}

/** Looks for lines, with the next and the previous one. */
export function Search({
  text,
  onText,
  found,
  place,
  onGo,
  none = "no line",
}: Pick<LogToolsProps, "text" | "onText" | "found" | "place" | "onGo"> & {
  /** What is said where nothing is found. */
  none?: string;
}): ReactNode {
  return (
    <search className="row tight">
      <input
        type="search"
        data-filter
        value={text}
        placeholder="Search the log"
        aria-label="Search the log"
        onChange={({ target }) => onText(target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          onGo(event.shiftKey ? -1 : 1);
        }}
      />
      {text !== "" && (
        <span className="quiet number" role="status">
          {found === 0 ? none : `${countText(place + 1)} of ${countText(found)}`}
        </span>
      )}
      {text !== "" && (
        <>
          <button
            type="button"
            className="quiet"
            aria-label="Previous match"
            disabled={found === 0}
            onClick={() => onGo(-1)}
          >
            <ChevronUp className="icon" aria-hidden="true" />
          </button>
          <button
            type="button"
            className="quiet"
            aria-label="Next match"
            disabled={found === 0}
            onClick={() => onGo(1)}
          >
            <ChevronDown className="icon" aria-hidden="true" />
          </button>
        </>
      )}
    </search>
  );
}

/** Gives a text to the browser as a file. */
export function download(name: string, parts: readonly string[]): void {
  const address = URL.createObjectURL(new Blob([...parts], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // After the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(address), 1_000);
}
