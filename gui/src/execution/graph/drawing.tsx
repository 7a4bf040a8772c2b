import { Background, Controls, type Edge, MarkerType, MiniMap, ReactFlow, type ReactFlowInstance } from "@xyflow/react";
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import "@xyflow/react/dist/style.css";
import "../../styles/graph.css";
import "../../styles/run-graph.css";
import type { Step } from "../../api/types.ts";
import { toneOfState } from "../state-sign.tsx";
import type { Arc } from "../traced/arcs.ts";
import { Arrow, type ArrowData } from "./arrows.tsx";
import type { Laid, Place, Places } from "./layout.ts";
import { type Shown, sketchOf, type TakenArc } from "./shown.ts";
import { StepBox, type StepNode } from "./step-box.tsx";
import { useLayout } from "./use-layout.ts";

/** Characters of an arrow's condition that stand beside it. */
const WHEN_MAX = 40;
/** Steps up to which a picture begins with all of them; a larger one with those around the centre. */
const FITTED_MAX = 40;
/** From so many boxes on a small map shows where in the picture one is. */
const MAPPED_MIN = 30;

/** What boxes do. */
export interface DrawingActions {
  /** The step that is chosen, and the execution whose step it is. */
  chosen: { step: string; executionId: string | undefined } | undefined;
  onStep: ((step: string, executionId: string | undefined) => void) | undefined;
  /** Opens or folds a step in place; undefined where it cannot be. */
  onFold: ((step: string, executionId: string | undefined) => void) | undefined;
}

/** Boxes and arrows. */
export function Drawing({
  shown,
  centre,
  actions,
  isSteady = false,
}: {
  shown: Shown;
  centre: string | undefined;
  actions: DrawingActions;
  /** It changes while it is looked at: boxes move within the same picture, and the chosen one is kept in sight. */
  isSteady?: boolean;
}): ReactNode {
  const area = useRef<HTMLElement>(null);
  const [ratio, setRatio] = useState(1.8);
  useLayoutEffect(() => {
    const { clientWidth: width = 0, clientHeight: height = 0 } = area.current ?? {};
    if (width > 0 && height > 0) setRatio(width / height);
  }, []);
  const sketch = useMemo(() => sketchOf(shown), [shown]);
  const { laid, failed } = useLayout(sketch, ratio);
  const edges = useMemo(
    () => (laid === undefined ? [] : edgesOf(shown, laid.places, laid.isAcross, "")),
    [shown, laid],
  );
  const nodes = laid === undefined ? [] : nodesOf(shown, laid, actions, centre);
  const isWhole = shown.drawn.steps.length <= FITTED_MAX || centre === undefined;
  const flow = useSteadyView(isSteady ? laid : undefined, actions.chosen?.step, area);
  return (
    <section className="graph" aria-label="Graph" ref={area}>
      {failed && <p role="alert">This browser could not lay the graph out. The trace has the same steps.</p>}
      {laid === undefined && !failed && <p className="pad quiet">Laying out {shown.drawn.steps.length} steps …</p>}
      {laid !== undefined && (
        <ReactFlow
          key={isSteady ? "steady" : `${isWhole ? "" : centre}${laid.isAcross}${sizeOf(laid)}`}
          onInit={(instance) => {
            flow.current = instance;
          }}
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={ARROW_TYPES}
          {...LOOKED_AT}
          fitView
          fitViewOptions={{
            ...FIT,
            ...(!isWhole && { nodes: nearestOf(shown.drawn.arcs, centre).map((id) => ({ id })) }),
          }}
          minZoom={0.05}
          onlyRenderVisibleElements
        >
          <Background gap={22} size={1} />
          <Controls showInteractive={false} />
          {nodes.length >= MAPPED_MIN && (
            <MiniMap
              pannable
              zoomable
              ariaLabel="Small map of the graph"
              nodeClassName={mapClass}
              nodeBorderRadius={6}
            />
          )}
        </ReactFlow>
      )}
    </section>
  );
}

/** Smaller than this nothing can be read: the small map leads to the rest. */
const FIT = { maxZoom: 1.15, minZoom: 0.35, padding: 0.08 };

/** It is looked at, and not changed. */
const LOOKED_AT = {
  nodesDraggable: false,
  nodesConnectable: false,
  nodesFocusable: false,
  edgesFocusable: false,
  elementsSelectable: false,
};

const sizeOf = ({ width, height }: Laid) => `${Math.round(width)}x${Math.round(height)}`;

type Flow = ReactFlowInstance<StepNode>;

/** Fits a picture again whose size has changed, and brings the chosen step into sight. */
function useSteadyView(laid: Laid | undefined, chosen: string | undefined, area: RefObject<HTMLElement | null>) {
  const flow = useRef<Flow>(undefined);
  const size = laid === undefined ? "" : sizeOf(laid);
  useEffect(() => {
    if (size !== "") void flow.current?.fitView(FIT);
  }, [size]);
  const place = chosen === undefined ? undefined : laid?.places[chosen];
  const [x, y] = place === undefined ? [] : [place.x + place.width / 2, place.y + place.height / 2];
  useEffect(() => {
    const { current } = flow;
    if (current === undefined || x === undefined || y === undefined || area.current === null) return;
    const { x: left, y: top, zoom } = current.getViewport();
    const isWithin = (at: number, length: number) => at > 0 && at < length;
    const { clientWidth: width, clientHeight: height } = area.current;
    if (isWithin(left + x * zoom, width) && isWithin(top + y * zoom, height)) return;
    void current.setCenter(x, y, { zoom });
  }, [x, y, area]);
  return flow;
}

const NODE_TYPES = { step: StepBox };
const ARROW_TYPES = { arrow: Arrow };

function mapClass({ data }: { data: unknown }): string {
  return `tone-${toneOfState((data as StepNode["data"]).state?.status ?? "")}`;
}

function nodesOf(shown: Shown, laid: Laid, actions: DrawingActions, centre: string | undefined): StepNode[] {
  const nodes: StepNode[] = [];
  addNodes(nodes, shown, laid.places, { ...actions, isAcross: laid.isAcross, centre }, "");
  return nodes;
}

function addNodes(
  nodes: StepNode[],
  shown: Shown,
  places: Places,
  how: DrawingActions & { isAcross: boolean; centre: string | undefined },
  parent: string,
): void {
  const { drawn, states, execution, inner, items } = shown;
  const id = execution?.execution_id;
  for (const step of drawn.steps) {
    const place = places[step.name];
    if (place === undefined) continue;
    const within = inner.get(step.name);
    const state = states.get(step.name);
    const nodeId = `${parent}${step.name}`;
    const isFoldable = how.onFold !== undefined && state !== undefined && state.runs > 0 && canUnfold(step, state);
    nodes.push({
      id: nodeId,
      type: "step",
      position: { x: place.x, y: place.y },
      width: place.width,
      height: place.height,
      ...(parent !== "" && { parentId: parent.slice(0, -1) }),
      data: {
        ...{ step, state, execution, isAcross: how.isAcross, items: items.get(step.name) },
        isGroup: within !== undefined,
        isChosen: how.chosen?.step === step.name && how.chosen.executionId === id,
        isCentre: parent === "" && step.name === how.centre && drawn.steps.length > FITTED_MAX,
        open: how.onStep === undefined ? undefined : () => how.onStep?.(step.name, id),
        fold: isFoldable ? () => how.onFold?.(step.name, id) : undefined,
      },
    });
    if (within !== undefined && place.inner !== undefined) addNodes(nodes, within, place.inner, how, `${nodeId}/`);
  }
}

function canUnfold({ kinds, isLoop }: { kinds: readonly string[]; isLoop: boolean }, { loop }: Step): boolean {
  return loop !== undefined || isLoop || kinds.includes("playbook");
}

function edgesOf(shown: Shown, places: Places, isAcross: boolean, parent: string): Edge[] {
  const { drawn, states, taken, inner } = shown;
  const timesOf = timesOfArcs(states, taken);
  const edges = drawn.arcs.flatMap((arc, index): Edge[] => {
    const [from, to] = [places[arc.from], places[arc.to]];
    if (from === undefined || to === undefined) return [];
    const count = timesOf(arc);
    const label = [count > 1 ? `${count}×` : "", conditionText(arc.when)].filter((text) => text !== "").join(" ");
    const isBack = isAcross ? to.x + to.width <= from.x + 1 : to.y + to.height <= from.y + 1;
    return [
      {
        id: `${parent}${arc.from}-${arc.to}-${index}`,
        type: "arrow",
        source: `${parent}${arc.from}`,
        target: `${parent}${arc.to}`,
        ...(label !== "" && { label }),
        markerEnd: { type: MarkerType.ArrowClosed },
        className: states.size === 0 ? "" : count > 0 ? "taken" : "untaken",
        data: {
          isAcross,
          isBack,
          from,
          to,
          beyond: isBack ? beyondOf(from, to, places, isAcross) : 0,
        } satisfies ArrowData,
        zIndex: parent === "" && !isBack ? 0 : 1,
      },
    ];
  });
  for (const [step, within] of inner) {
    const place = places[step]?.inner;
    if (place !== undefined) edges.push(...edgesOf(within, place, isAcross, `${parent}${step}/`));
  }
  return edges;
}

/** How far the boxes between two reach beyond the first: below it where arrows point to the right, else at its right. */
function beyondOf(from: Place, to: Place, places: Places, isAcross: boolean): number {
  const end = ({ x, y, width, height }: Place) => (isAcross ? y + height : x + width);
  const at = ({ x, y }: Place) => (isAcross ? x : y);
  const between = Object.values(places).filter((place) => at(place) >= at(to) && at(place) <= at(from));
  return Math.max(0, ...between.map((place) => end(place) - end(from)));
}

function timesOfArcs(states: ReadonlyMap<string, Step>, taken: readonly TakenArc[] | undefined): (arc: Arc) => number {
  const times = new Map(taken?.map((arc) => [JSON.stringify([arc.from, arc.to]), arc.times]));
  const began = (name: string) => (states.get(name)?.runs ?? 0) > 0;
  // Servers that do not report which arrows were taken report which steps started.
  return ({ from, to }) =>
    taken === undefined ? Number(began(from) && began(to)) : (times.get(JSON.stringify([from, to])) ?? 0);
}

function conditionText(when: string | undefined): string {
  const text = /^\{\{([^{}]*)\}\}$/.exec(when?.trim() ?? "")?.[1]?.trim() ?? when ?? "";
  return text.length > WHEN_MAX ? `${text.slice(0, WHEN_MAX)}…` : text;
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
