import { graphlib, layout } from "@dagrejs/dagre";

/** Size of a step's box, pixels. */
export const BOX = { width: 200, height: 54 };

/** Room at the right of a box for an arrow to the box itself, with its condition. */
const OWN_ARROW_WIDTH = 160;

/** What is laid out: names, and arrows between them. */
export interface Sketch {
  names: string[];
  arcs: [from: string, to: string][];
}

/** The upper left corner of each box. */
export type Places = Record<string, { x: number; y: number }>;

/** Steps from top to bottom, so that arrows point down where they can. Takes about a millisecond for each step. */
export function placesOf({ names, arcs }: Sketch): Places {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 40, ranksep: 60 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const name of names) graph.setNode(name, { ...BOX });
  for (const [from, to] of arcs) graph.setEdge(from, to, from === to ? { width: OWN_ARROW_WIDTH, height: 0 } : {});
  layout(graph);
  return Object.fromEntries(
    names.map((name) => {
      const { x, y } = graph.node(name) as { x: number; y: number };
      return [name, { x: x - BOX.width / 2, y: y - BOX.height / 2 }];
    }),
  );
}
