import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { ChevronDown, ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import type { Execution, Step } from "../../api/types.ts";
import { durationText } from "../../parts/time.ts";
import { StateSign, toneOfState } from "../state-sign.tsx";
import { ToolIcon } from "../tool-icon.tsx";
import type { GraphStep } from "../traced/arcs.ts";
import { loopText, stepState } from "../traced/step-state.ts";
import { ITEMS_MAX, type ItemState } from "./shown.ts";

/** A step's box, with what it needs to draw itself. */
export type StepNode = Node<
  {
    step: GraphStep;
    state: Step | undefined;
    execution: Execution | undefined;
    isAcross: boolean;
    isChosen: boolean;
    isCentre: boolean;
    items: readonly ItemState[] | undefined;
    /** A playbook that it called is drawn within it. */
    isGroup: boolean;
    open: (() => void) | undefined;
    fold: (() => void) | undefined;
  },
  "step"
>;

/** A step: its state, its tools, how long it took and how often it ran; with its items or what it called where it is opened. */
export function StepBox({ data }: NodeProps<StepNode>): ReactNode {
  const { step, state, execution, isAcross, isChosen, isCentre, items, isGroup, open, fold } = data;
  const is = state === undefined || execution === undefined ? undefined : stepState(execution, state);
  const isUntaken = is === "SKIPPED" || is === "PENDING" || is === "UNREACHED";
  const classes = ["graph-node", `tone-${toneOfState(is ?? "")}`];
  if (isUntaken) classes.push("untaken");
  if (isCentre) classes.push("centre");
  if (isChosen) classes.push("chosen");
  if (isGroup) classes.push("group");
  const text = (
    <>
      <span className="name" title={step.name}>
        {is !== undefined && <StateSign of={is} />}
        <ToolIcon kinds={step.kinds} />
        <span>{step.name}</span>
      </span>
      <span className="quiet">{noteOf(step, state)}</span>
    </>
  );
  return (
    <>
      <Handle type="target" position={isAcross ? Position.Left : Position.Top} />
      <div className={classes.join(" ")} aria-current={isChosen ? "true" : undefined}>
        {open === undefined ? (
          <div className="face">{text}</div>
        ) : (
          <button type="button" className="face" onClick={open}>
            {text}
          </button>
        )}
        {fold !== undefined && (
          <button
            type="button"
            className="fold nodrag"
            aria-expanded={isGroup || items !== undefined}
            aria-label={`${isGroup || items !== undefined ? "Fold" : "Unfold"} ${step.name}`}
            onClick={fold}
          >
            {isGroup || items !== undefined ? (
              <ChevronDown className="icon" aria-hidden="true" />
            ) : (
              <ChevronRight className="icon" aria-hidden="true" />
            )}
          </button>
        )}
        {items !== undefined && <Items items={items} />}
      </div>
      <Handle type="source" position={isAcross ? Position.Right : Position.Bottom} />
    </>
  );
}

function Items({ items }: { items: readonly ItemState[] }): ReactNode {
  const count = (state: ItemState) => items.filter((item) => item === state).length;
  return (
    <div className="graph-items" role="img" aria-label={`${count("good")} items completed, ${count("bad")} failed`}>
      {items.slice(0, ITEMS_MAX).map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an item is its place
        <i key={index} className={`tone-${item}`} title={`item ${index}`} />
      ))}
    </div>
  );
}

function noteOf(step: GraphStep, state: Step | undefined): string {
  const parts: string[] = [];
  if (state?.duration_ms != null && state.runs > 0) parts.push(durationText(state.duration_ms));
  if (state?.loop !== undefined) parts.push(loopText(state.loop, state.ended_at !== null));
  else if (step.isLoop) parts.push("loop");
  if ((state?.runs ?? 0) > 1) parts.push(`${state?.runs} runs`);
  if (parts.length === 0) parts.push(step.kinds.slice(0, 3).join(", "));
  return parts.join(" · ");
}
