import type { Measurement } from "./measurement.ts";

/** One small chart: a figure of everyone who was measured. */
interface Panel {
  title: string;
  /** How the measurement's name begins. */
  measurement: string;
  better: "more" | "less";
}

/** A column for steps, one for loops, one for results. */
const COLUMNS: readonly (readonly Panel[])[] = [
  [
    { title: "Chains of 10 steps, 64 at once", measurement: "B1 10 steps each, 64 in flight", better: "more" },
    { title: "Chains of 10 steps, 256 at once", measurement: "B1 10 steps each, 256 in flight", better: "more" },
    { title: "One chain of 40 steps", measurement: "B2 40 steps, unloaded, p50", better: "less" },
  ],
  [
    { title: "100 iterations in parallel", measurement: "B3 parallel loop of 100, p50", better: "less" },
    { title: "1,000 iterations in parallel", measurement: "B3 parallel loop of 1,000, p50", better: "less" },
    { title: "10,000 iterations in parallel", measurement: "B3 parallel loop of 10,000, p50", better: "less" },
  ],
  [
    { title: "Results of 1.6 KB", measurement: "B6 results of 1.6 KB", better: "more" },
    { title: "Results of 16 KB", measurement: "B6 results of 16 KB", better: "more" },
    { title: "Results of 160 KB", measurement: "B6 results of 160 KB", better: "more" },
  ],
];

/** Who is shown, in this order, with the class of the bar. */
const BARS: readonly (readonly [name: string, kind: string])[] = [
  ["flow", "own"],
  ["flow, pure", "pure"],
  ["DBOS", "peer"],
  ["Restate", "peer"],
];

/** Pixels. */
const PANEL = { width: 300, height: 142, gap: 18 };
const BAR = { left: 70, width: 150, height: 14, step: 21, top: 44 };
const MARGIN = 20;
const NOTE_HEIGHT = 26;

/** Where the browser prefers dark, the picture is: an image on a page knows no more than that. */
const STYLE = `
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .back { fill: #ffffff; } .title { font-weight: 600; font-size: 13px; } .quiet { fill: #59636e; } .end { text-anchor: end; }
  .own { fill: #0969da; } .pure { fill: #80b4f0; } .peer { fill: #b3bac1; } .axis { stroke: #d1d9e0; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .back { fill: #0d1117; } .quiet { fill: #9198a1; }
    .own { fill: #4493f8; } .pure { fill: #2a5a96; } .peer { fill: #59636e; } .axis { stroke: #3d444d; }
  }`;

/** A picture of a run: flow beside its peers, a panel for each measurement. Figures that the run lacks are left out. */
export function chartOf(measurements: readonly Measurement[], note: string): string {
  const isMeasured = ({ measurement }: Panel) => measurements.some(({ name }) => name === measurement);
  const columns = COLUMNS.filter((column) => column.some(isMeasured));
  const rows = Math.max(1, ...columns.map((column) => column.length));
  // Two at least: the note below takes as much.
  const count = Math.max(2, columns.length);
  const width = 2 * MARGIN + count * PANEL.width + (count - 1) * PANEL.gap;
  const height = 2 * MARGIN + rows * PANEL.height + NOTE_HEIGHT;
  const panels = columns.flatMap((column, x) =>
    column.map((panel, y) => {
      const found = measurements.find(({ name }) => name === panel.measurement);
      const place = `translate(${MARGIN + x * (PANEL.width + PANEL.gap)} ${MARGIN + y * PANEL.height})`;
      return found === undefined ? "" : `<g transform="${place}">${panelOf(panel, found)}</g>`;
    }),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>flow beside DBOS and Restate</title><style>${STYLE}\n</style>`,
    `<rect class="back" width="${width}" height="${height}" rx="6"/>`,
    ...panels,
    text(note, `class="quiet" x="${MARGIN}" y="${height - MARGIN}"`),
    "</svg>\n",
  ].join("\n");
}

function panelOf({ title, better }: Panel, { value, unit, beside }: Measurement): string {
  const figures: Readonly<Record<string, number>> = { flow: value, ...beside };
  const known = BARS.filter(([name]) => Number.isFinite(figures[name]));
  const most = Math.max(...known.map(([name]) => figures[name] ?? 0));
  const bars = known.map(([name, kind], index) => {
    const y = BAR.top + index * BAR.step;
    const figure = figures[name] ?? 0;
    const length = Math.max(1, (figure / most) * BAR.width);
    const base = y + BAR.height - 3;
    return [
      text(name, `class="end" x="${BAR.left - 8}" y="${base}"`),
      `<rect class="${kind}" x="${BAR.left}" y="${y}" width="${length.toFixed(1)}" height="${BAR.height}" rx="2"/>`,
      text(shown(figure), `x="${BAR.left + Number(length.toFixed(1)) + 6}" y="${base}"`),
    ].join("");
  });
  const bottom = BAR.top + known.length * BAR.step;
  return [
    text(title, `class="title" x="0" y="12"`),
    text(`${unit}, ${better} is better`, `class="quiet" x="0" y="29"`),
    `<line class="axis" x1="${BAR.left}" x2="${BAR.left}" y1="${BAR.top - 4}" y2="${bottom - 3}"/>`,
    ...bars,
  ].join("");
}

function text(words: string, attributes: string): string {
  const escaped = words.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return `<text ${attributes}>${escaped}</text>`;
}

/** Three digits, which is more than a run repeats. */
function shown(figure: number): string {
  const digits = figure >= 100 ? 0 : figure >= 10 ? 1 : 2;
  return figure.toLocaleString("en-US", { maximumFractionDigits: digits });
}
