import { isTerminal } from "../../engine/state/state.ts";
import { createLiveRegion, type Terminal } from "../terminal/live-region.ts";
import type { Style } from "../terminal/style.ts";
import { cleanText } from "../terminal/text.ts";
import { detailLine } from "./lines.ts";
import { logLine, type Progress } from "./progress.ts";
import type { ExecutionRow, RunModel } from "./run-model.ts";
import { treeLines } from "./tree.ts";

/** Time between two drawings. */
const FRAME_MS = 100;
/** Lines for above the tree that are held until the next drawing; a tool that writes faster draws earlier. */
const PENDING_LINES_MAX = 500;
/** Lines of the tree that stays when the run is over. */
const FINAL_LINES_MAX = 200;

/** What a live tree is drawn with; the last two are parts that tests replace. */
export interface TreeOptions {
  terminal: Terminal;
  style: Style;
  verbose: boolean;
  now(): number;
  /** The page's address of the run, on a server. */
  address?: string;
  /** Calls `task` every so often until the function that it gives is called. */
  every(ms: number, task: () => void): () => void;
}

/** Progress for terminals: a tree of the steps, drawn in place ten times a second, with tool output above it. */
export function createTreeProgress(model: RunModel, options: TreeOptions): Progress {
  const { terminal, style } = options;
  const region = createLiveRegion(terminal);
  let above: string[] = [];
  let isCancelling = false;
  let isOver = false;

  const draw = (lines: number) => {
    const root = model.root();
    if (root === undefined || isOver) return;
    const head = headOf(root, options.address);
    // One column stays free: a full line makes some terminals wrap.
    const view = { head, now: options.now(), columns: terminal.columns() - 1, lines, style, cancelling: isCancelling };
    region.draw(treeLines(root, view), above);
    above = [];
  };
  // The cursor needs a row of its own below the tree.
  const drawNow = () => draw(terminal.rows() - 1);
  const add = (line: string) => {
    above.push(style.dim(line));
    if (above.length >= PENDING_LINES_MAX) drawNow();
  };
  const stopTimer = options.every(FRAME_MS, drawNow);

  return {
    observe(execution, events) {
      if (!options.verbose) return;
      for (const event of events) {
        const line = detailLine(execution, event);
        if (line !== undefined) add(line);
      }
    },
    log: (line) => add(logLine(model, line)),
    notice: (text) => add(cleanText(text)),
    cancelling() {
      isCancelling = true;
      drawNow();
    },
    stop() {
      if (isOver) return;
      stopTimer();
      isCancelling = false;
      draw(FINAL_LINES_MAX);
      isOver = true;
      region.end();
    },
  };
}

/** Whose steps these are, and on a server where a browser shows them. When a run here is over its outcome says it below. */
function headOf({ state }: ExecutionRow, address: string | undefined): string[] {
  const name = cleanText(state.path);
  if (address !== undefined) return [name, cleanText(address)];
  return isTerminal(state.status) ? [] : [name];
}
