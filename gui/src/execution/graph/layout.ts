import { graphlib, layout } from "@dagrejs/dagre";

/** Size of a step's box, pixels. */
export const BOX = { width: 208, height: 58 };
/** Room around what is drawn within a box, and for the box's own words above it. */
export const INNER = { side: 14, top: 62 };

/** Room at a box for an arrow to the box itself, with its condition. */
const OWN_ARROW = { width: 160, height: 44 };
const GAPS = { nodesep: 34, ranksep: 62 };

/** A box: a step, with what is drawn within it where it is opened. */
export interface Box {
  name: string;
  width: number;
  height: number;
  inner?: Sketch | undefined;
}

/** What is laid out: boxes, and arrows between them. */
export interface Sketch {
  boxes: Box[];
  arcs: [from: string, to: string][];
}

/** The upper left corner of a box, its size, and the boxes within it. */
export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
  inner: Places | undefined;
}
/** Boxes in their places, by the names of their steps. */
export type Places = Record<string, Place>;

/** Boxes in their places. `isAcross`: arrows point to the right, else down. */
export interface Laid {
  places: Places;
  width: number;
  height: number;
  isAcross: boolean;
}

/**
 * From left to right or from top to bottom, whichever is seen larger in an area of this ratio of width to height. Takes about a
 * millisecond for each step and direction.
 */
export function laidOut(sketch: Sketch, ratio: number): Laid {
  const across = placed(sketch, true);
  const down = placed(sketch, false);
  const scale = ({ width, height }: Laid) => Math.min(ratio / width, 1 / height);
  return scale(across) >= scale(down) ? across : down;
}

function placed({ boxes, arcs }: Sketch, isAcross: boolean): Laid {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: isAcross ? "LR" : "TB", ...GAPS });
  graph.setDefaultEdgeLabel(() => ({}));
  const inner = new Map<string, Laid>();
  for (const box of boxes) {
    const within = box.inner === undefined ? undefined : placed(box.inner, isAcross);
    if (within !== undefined) inner.set(box.name, within);
    const width = within === undefined ? box.width : Math.max(box.width, within.width + 2 * INNER.side);
    const height = within === undefined ? box.height : within.height + INNER.top + INNER.side;
    graph.setNode(box.name, { width, height });
  }
  const own = isAcross ? { width: 0, height: OWN_ARROW.height } : { width: OWN_ARROW.width, height: 0 };
  for (const [from, to] of arcs) graph.setEdge(from, to, from === to ? own : {});
  layout(graph);
  const size = graph.graph();
  const places = boxes.map(({ name }): [string, Place] => {
    const { x, y, width, height } = graph.node(name) as { x: number; y: number; width: number; height: number };
    const corner = { x: x - width / 2, y: y - height / 2 };
    return [name, { ...corner, width, height, inner: shifted(inner.get(name)?.places) }];
  });
  return { places: Object.fromEntries(places), width: size.width ?? 1, height: size.height ?? 1, isAcross };
}

/** Boxes within a box begin below its words. */
function shifted(places: Places | undefined): Places | undefined {
  if (places === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(places).map(([name, place]) => [
      name,
      { ...place, x: place.x + INNER.side, y: place.y + INNER.top },
    ]),
  );
}
