import {
  Background,
  BaseEdge,
  Controls,
  type Edge,
  type EdgeProps,
  getBezierPath,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from "@xyflow/react";
import { type ReactNode, useMemo } from "react";
import "@xyflow/react/dist/style.css";
import "../../styles/graph.css";
import type { Execution, Step } from "../../api/types.ts";
import { Status } from "../../parts/status.tsx";
import { loopText } from "../summary/answer.tsx";
import type { Arc, GraphStep } from "./arcs.ts";
import { BOX } from "./layout.ts";
import type { Drawn } from "./neighbourhood.ts";
import { useLayout } from "./use-layout.ts";

/** An arrow that was taken, and how often. */
export type TakenArc = NonNullable<Execution["arcs"]>[number];

/** How far an arrow from a step to itself reaches beyond its box, pixels. */
const OWN_ARROW_PX = 56;
/** Characters of an arrow's condition that stand beside it. */
const WHEN_MAX = 40;
/** Steps up to which a picture begins with all of them; a larger one with those around the centre. */
const FITTED_MAX = 40;
const TONES: Record<string, string> = { COMPLETED: "good", FAILED: "bad", RUNNING: "busy" };

type StepNode = Node<
  { step: GraphStep; state: Step | undefined; isCentre: boolean; open: (() => void) | undefined },
  "step"
>;

/** Boxes and arrows. `states` is empty for a playbook that is not run. */
export function Drawing({
  drawn,
  states,
  taken,
  centre,
  onStep,
}: {
  drawn: Drawn;
  states: ReadonlyMap<string, Step>;
  taken: readonly TakenArc[] | undefined;
  centre: string | undefined;
  onStep: ((step: string) => void) | undefined;
}): ReactNode {
  const { places, failed } = useLayout(drawn);
  const edges = useMemo(() => edgesOf(drawn.arcs, states, taken), [drawn.arcs, states, taken]);
  if (failed)
    return <p role="alert">This browser could not lay the graph out. The list of steps has the same steps.</p>;
  if (places === undefined) return <p className="quiet">Laying out {drawn.steps.length} steps …</p>;
  const nodes: StepNode[] = drawn.steps.map((step) => ({
    id: step.name,
    type: "step",
    position: places[step.name] ?? { x: 0, y: 0 },
    data: {
      step,
      state: states.get(step.name),
      isCentre: step.name === centre,
      open: onStep === undefined ? undefined : () => onStep(step.name),
    },
    ...BOX,
  }));
  const isWhole = nodes.length <= FITTED_MAX || centre === undefined;
  return (
    <section className="graph" aria-label="Graph">
      <ReactFlow
        key={centre}
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={ARROW_TYPES}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        fitView
        fitViewOptions={{
          maxZoom: 1.1,
          padding: 0.1,
          ...(!isWhole && { nodes: nearestOf(drawn.arcs, centre).map((id) => ({ id })) }),
        }}
        minZoom={0.05}
        onlyRenderVisibleElements
      >
        <Background />
        <Controls showInteractive={false} />
      </ReactFlow>
    </section>
  );
}

const NODE_TYPES = { step: StepBox };

function StepBox({ data: { step, state, isCentre, open } }: NodeProps<StepNode>): ReactNode {
  const isUntaken = state !== undefined && (state.status === "SKIPPED" || state.status === "PENDING");
  const text = (
    <>
      <span className="name" title={step.name}>
        {state !== undefined && <Status of={state.status} short />} {step.name}
      </span>
      <span className="quiet">
        {step.kinds.slice(0, 3).join(", ")}
        {state?.loop !== undefined ? ` · ${loopText(state.loop)}` : step.isLoop && " · loop"}
        {(state?.runs ?? 0) > 1 && ` · ${state?.runs} runs`}
      </span>
    </>
  );
  const className = `graph-node tone-${TONES[state?.status ?? ""] ?? "quiet"} ${isUntaken ? "untaken" : ""} ${isCentre ? "centre" : ""}`;
  return (
    <>
      <Handle type="target" position={Position.Top} />
      {open === undefined ? (
        <div className={className}>{text}</div>
      ) : (
        <button type="button" className={className} onClick={open}>
          {text}
        </button>
      )}
      <Handle type="source" position={Position.Bottom} />
    </>
  );
}

function edgesOf(
  arcs: readonly Arc[],
  states: ReadonlyMap<string, Step>,
  taken: readonly TakenArc[] | undefined,
): Edge[] {
  const times = new Map(taken?.map((arc) => [JSON.stringify([arc.from, arc.to]), arc.times]));
  const began = (name: string) => (states.get(name)?.runs ?? 0) > 0;
  // Servers that do not report which arrows were taken report which steps started.
  const timesOf = ({ from, to }: Arc) =>
    taken === undefined ? Number(began(from) && began(to)) : (times.get(JSON.stringify([from, to])) ?? 0);
  return arcs.map((arc, index) => {
    const count = timesOf(arc);
    const label = [count > 1 ? `${count}×` : "", conditionText(arc.when)].filter((text) => text !== "").join(" ");
    return {
      id: `${arc.from}-${arc.to}-${index}`,
      type: "arrow",
      source: arc.from,
      target: arc.to,
      ...(label !== "" && { label }),
      markerEnd: { type: MarkerType.ArrowClosed },
      className: states.size === 0 ? "" : count > 0 ? "taken" : "untaken",
    };
  });
}

function conditionText(when: string | undefined): string {
  const text = /^\{\{([^{}]*)\}\}$/.exec(when?.trim() ?? "")?.[1]?.trim() ?? when ?? "";
  return text.length > WHEN_MAX ? `${text.slice(0, WHEN_MAX)}…` : text;
}

const ARROW_TYPES = { arrow: Arrow };

/** An arrow with its condition near its head, where those of a step's other arrows are farther away than at its middle. */
function Arrow(props: EdgeProps): ReactNode {
  const { sourceX, sourceY, targetX, targetY, markerEnd, label } = props;
  if (props.source === props.target) return <OwnArrow {...props} />;
  const [path, middleX, middleY] = getBezierPath(props);
  const isDown = targetY > sourceY;
  // The point at 0.7 of the curve, whose handles are half its height long.
  const labelX = isDown ? sourceX + 0.784 * (targetX - sourceX) : middleX;
  const labelY = isDown ? sourceY + 0.658 * (targetY - sourceY) : middleY;
  return (
    <BaseEdge
      path={path}
      label={label}
      labelX={labelX}
      labelY={labelY}
      {...(markerEnd !== undefined && { markerEnd })}
    />
  );
}

/** An arrow from a step to itself, which goes around the right side of its box. */
function OwnArrow({ sourceX, sourceY, targetY, markerEnd, label }: EdgeProps): ReactNode {
  const right = sourceX + BOX.width / 2;
  const [from, to] = [sourceY - BOX.height * 0.25, targetY + BOX.height * 0.25];
  const out = right + OWN_ARROW_PX;
  // A label stands around its middle: this one must not reach back over the box.
  const labelHalf = 3 * String(label ?? "").length;
  return (
    <BaseEdge
      path={`M ${right} ${from} C ${out} ${from + 12} ${out} ${to - 12} ${right + 2} ${to}`}
      label={label}
      labelX={right + OWN_ARROW_PX * 0.8 + labelHalf}
      labelY={(from + to) / 2}
      labelBgPadding={[2, 1]}
      {...(markerEnd !== undefined && { markerEnd })}
    />
  );
}

/** The centre and what stands two arrows away from it at the most. */
function nearestOf(arcs: readonly Arc[], centre: string): string[] {
  let near = new Set([centre]);
  for (let ring = 0; ring < 2; ring += 1) {
    const wider = new Set(near);
    for (const { from, to } of arcs) {
      if (near.has(from)) wider.add(to);
      if (near.has(to)) wider.add(from);
    }
    near = wider;
  }
  return [...near];
}
