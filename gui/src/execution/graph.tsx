import { graphlib, layout } from "@dagrejs/dagre";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import {
  Background,
  Controls,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from "@xyflow/react";
import { type ReactNode, useMemo } from "react";
import "@xyflow/react/dist/style.css";
import type { Execution, Step } from "../api/types.ts";
import { catalogEntry } from "../app/queries.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { Status } from "../parts/status.tsx";
import { loopText } from "./answer.tsx";
import { type Arc, type GraphStep, graphOf } from "./arcs.ts";

const WIDTH = 200;
const HEIGHT = 54;
const TONES: Record<string, string> = { COMPLETED: "good", FAILED: "bad", RUNNING: "busy" };

type StepNode = Node<{ step: GraphStep; state: Step | undefined }, "step">;

/** The playbook as it ran: what was taken in full, what was not dimmed. */
export default function Graph({ execution }: { execution: Execution }): ReactNode {
  const entry = useQuery(catalogEntry(execution.path, String(execution.version)));
  const navigate = useNavigate({ from: "/executions/$executionId" });
  if (entry.isError) return <ProblemPanel error={entry.error} again={() => void entry.refetch()} />;
  if (entry.data === undefined) return <p className="quiet">Loading …</p>;
  return (
    <PlaybookGraph
      payload={entry.data.payload}
      steps={execution.steps}
      onStep={(step) => void navigate({ search: (before) => ({ ...before, tab: "steps", step }) })}
    />
  );
}

/** A document's steps and arrows; with `steps`, how far each of them is. */
export function PlaybookGraph({
  payload,
  steps,
  onStep,
}: {
  payload: Readonly<Record<string, unknown>>;
  steps: readonly Step[];
  onStep?: (step: string) => void;
}): ReactNode {
  const drawn = useMemo(() => graphOf(payload), [payload]);
  const places = useMemo(() => placesOf(drawn.steps, drawn.arcs), [drawn]);
  const states = new Map(steps.map((step) => [step.name, step]));
  const nodes: StepNode[] = drawn.steps.map((step) => ({
    id: step.name,
    type: "step",
    position: places.get(step.name) ?? { x: 0, y: 0 },
    data: { step, state: states.get(step.name) },
    width: WIDTH,
    height: HEIGHT,
  }));
  const began = (name: string) => (states.get(name)?.runs ?? 0) > 0;
  const hasRun = steps.length > 0;
  return (
    <div className="graph">
      <ReactFlow
        nodes={nodes}
        edges={drawn.arcs.map((arc, index) => ({
          id: `${arc.from}-${arc.to}-${index}`,
          source: arc.from,
          target: arc.to,
          ...(arc.when !== undefined && { label: arc.when.slice(0, 40) }),
          markerEnd: { type: MarkerType.ArrowClosed },
          className: !hasRun ? "" : began(arc.from) && began(arc.to) ? "taken" : "untaken",
        }))}
        nodeTypes={NODE_TYPES}
        onNodeClick={(_, node) => onStep?.(node.id)}
        nodesDraggable={false}
        nodesConnectable={false}
        fitView
        minZoom={0.05}
        onlyRenderVisibleElements
      >
        <Background />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}

const NODE_TYPES = { step: StepBox };

function StepBox({ data: { step, state } }: NodeProps<StepNode>): ReactNode {
  const isUntaken = state !== undefined && (state.status === "SKIPPED" || state.status === "PENDING");
  return (
    <div className={`graph-node tone-${TONES[state?.status ?? ""] ?? "quiet"} ${isUntaken ? "untaken" : ""}`}>
      <Handle type="target" position={Position.Top} />
      <div className="name" title={step.name}>
        {state !== undefined && <Status of={state.status} short />} {step.name}
      </div>
      <div className="quiet">
        {step.kinds.slice(0, 3).join(", ")}
        {state?.loop !== undefined && ` · ${loopText(state.loop)}`}
      </div>
      <Handle type="source" position={Position.Bottom} />
    </div>
  );
}

function placesOf(steps: readonly GraphStep[], arcs: readonly Arc[]): Map<string, { x: number; y: number }> {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 40, ranksep: 60 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { name } of steps) graph.setNode(name, { width: WIDTH, height: HEIGHT });
  for (const { from, to } of arcs) graph.setEdge(from, to);
  layout(graph);
  return new Map(
    steps.map(({ name }) => {
      const { x, y } = graph.node(name) as { x: number; y: number };
      return [name, { x: x - WIDTH / 2, y: y - HEIGHT / 2 }];
    }),
  );
}
